"""The package itself: what it needs, and what it gives."""

from pathlib import Path
from types import ModuleType

import custom_pypto
import custom_pypto.core
import custom_pypto_plugin
import pytest
from custom_pypto.core import version
from plugin_factory import CORE_PACKAGES, link
from programs import Done, run_python


def start(folder: Path, code: str, status: int = 0) -> Done:
    """Run `code` with nothing to import but our packages and what is in `folder`."""
    link(folder, *CORE_PACKAGES)
    return run_python("-S", "-c", code, env={"PYTHONPATH": str(folder)}, status=status)


def test_without_torch_the_import_says_what_to_install(tmp_path: Path) -> None:
    assert start(tmp_path, "import custom_pypto.core", 1).stderr.splitlines()[-1] == (
        "ImportError: custom_pypto.core needs PyTorch 2.10 or newer, which is not installed;"
        " install it: pip install 'torch>=2.10'; `custom-pypto doctor` says what else is wrong with"
        " this installation"
    )


AUTOLOAD = (
    "Failed to load the backend extension: torch_npu. You can disable extension auto-loading with"
    " TORCH_DEVICE_BACKEND_AUTOLOAD=0"
)
NEEDS = "torch_npu needs CANN: where there is CANN, run `source <CANN folder>/set_env.sh` first; "


@pytest.mark.parametrize(
    ("error", "failure", "advice"),
    [
        ("RuntimeError", "no CANN", ""),
        ("RuntimeError", AUTOLOAD, NEEDS),
        # torch misses another module.
        ("ModuleNotFoundError", "No module named sympy", ""),
    ],
)
def test_a_torch_that_fails_is_named(tmp_path: Path, error: str, failure: str, advice: str) -> None:
    (tmp_path / "torch.py").write_text(f"raise {error}({failure + '.'!r})", encoding="utf-8")
    assert start(tmp_path, "import custom_pypto", 1).stderr.splitlines()[-1] == (
        f"ImportError: custom_pypto.core needs PyTorch, but importing torch failed: {error}:"
        f" {failure}; {advice}`custom-pypto doctor` says what else is wrong with this installation"
    )


def test_discovery_works_without_torch(tmp_path: Path) -> None:
    done = start(
        tmp_path,
        "from custom_pypto_discovery import discovery, environment;"
        "print(discovery.discover(environment.read()))",
    )
    assert (done.stdout, done.stderr) == ("()\n", "")


@pytest.mark.parametrize("package", [custom_pypto.core, custom_pypto_plugin])
def test_public_names_are_sorted(package: ModuleType) -> None:
    names = package.__all__
    assert names == sorted(names)
    assert all(hasattr(package, name) for name in names)
    assert custom_pypto.__version__ == custom_pypto.core.__version__


@pytest.mark.parametrize("metadata", [b"", b"\xff\xfe", b"Name: custom-pypto-core\n"])
def test_broken_metadata_of_core_give_no_version(tmp_path: Path, metadata: bytes) -> None:
    dist_info = tmp_path / "custom_pypto_core-0.1.0.dist-info"
    dist_info.mkdir()
    (dist_info / "METADATA").write_bytes(metadata)
    code = f"import runpy; print(runpy.run_path({version.__file__!r})['__version__'])"
    assert start(tmp_path, code).stdout == "0+unknown\n"


TORCH_AND_CORE = ["torch", "custom_pypto"]
ALL_BUT_ITSELF = [*TORCH_AND_CORE, "custom_pypto_discovery", "custom_pypto_contract"]
# A statement, and what it must not import: authors and tools import these packages often.
LIGHT = {
    "import custom_pypto_plugin": ALL_BUT_ITSELF,
    "import custom_pypto_testing": TORCH_AND_CORE,
    "import custom_pypto_testing.plugin": TORCH_AND_CORE,
    "from custom_pypto_cli import console; console.parser()": [
        *TORCH_AND_CORE,
        "numpy",
        "pluggy",
        "setuptools",
    ],
}


@pytest.mark.parametrize("statement", LIGHT)
def test_import_loads_no_more_than_it_needs(statement: str) -> None:
    code = f"{statement}\nimport sys\nprint([m for m in {LIGHT[statement]} if m in sys.modules])"
    assert run_python("-W", "error", "-c", code).stdout == "[]\n"
