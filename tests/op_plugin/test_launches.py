"""Imported ops pass to their kernels what torch_npu's own ops pass.

torch_npu's own are compiled from what op-plugin generates of the same file, and from its C++.
"""

from itertools import islice
from pathlib import Path

import pytest
from custom_pypto_build import plugin_library
from custom_pypto_build.importing import ops_toml
from custom_pypto_build.importing.model import ImportedOp
from custom_pypto_build.importing.ops_toml import Imported
from custom_pypto_simulator_build import build_kernels
from simulated import Simulated

from op_plugin import INCOMPARABLE, recording

TESTS = Path(__file__).parents[1]
_OPS_OF_A_PLUGIN = 50
"""g++ needs gigabytes for a file with many more."""


Plugin = tuple[Path, Path]
"""The folder of a compiled plugin, and its library."""


@pytest.fixture(scope="session")
def package(all_imported: list[ImportedOp], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An opp package with the kernels of all ops."""
    folder = tmp_path_factory.mktemp("recorded")
    project = recording.write(all_imported, folder / "project")
    return build_kernels([project], folder / "opp")["recorded"]


@pytest.fixture(scope="session")
def plugins(
    all_imported: list[ImportedOp], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Plugin]:
    """The plugin of each op."""
    folder = tmp_path_factory.mktemp("plugins")
    left = iter(all_imported)
    found: dict[str, Plugin] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CXXFLAGS", "-O0")
        while ops := list(islice(left, _OPS_OF_A_PLUGIN)):
            source = folder / f"plugin{len(found)}"
            ops_toml.write(Imported(ops), ["functions of op-plugin"], source)
            library = plugin_library.build_project(source, folder / f"built{len(found)}")
            found |= {op.name: (source, library) for op in ops}
    return found


def test_an_imported_op_passes_what_torch_npu_passes(
    imported: ImportedOp,
    plugins: dict[str, Plugin],
    package: Path,
    machines: Simulated,
    tmp_path: Path,
) -> None:
    variables = {
        "ASCEND_CUSTOM_OPP_PATH": str(package),
        "CUSTOM_PYPTO_PLUGINS": "",  # plugins here have some of the ops
        "RECORDED_LAUNCHES": str(tmp_path / "launches"),
        **dict.fromkeys(["CUSTOM_PYPTO_SIM_EXECUTOR_CACHE", "TASK_QUEUE_ENABLE"], "0"),
    }
    arguments = [*map(str, plugins[imported.name]), imported.name, recording.kernel_of(imported)]
    code = f"from op_plugin import launches; print(launches.compare(*{arguments}))"
    done = machines.server(variables).run(code, [TESTS], variables)
    assert done.returncode == 0, done.stdout + done.stderr
    result = done.stdout.splitlines()[-1]
    if result.startswith(INCOMPARABLE):
        pytest.skip(result)
    assert result == ""
