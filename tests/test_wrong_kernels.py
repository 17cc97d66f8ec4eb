"""The conformance suite passes plugins as other people write them, and catches each fault in them.

Beside each plugin is faults.toml, a table of kinds of fault. Every wrong kernel is right but for
one place, compiles, and reads and writes allocated memory only.
"""

import json
from collections.abc import Callable
from typing import Any

import pytest
import wrong_kernels
from repository import THIRD_PARTY
from scratch import Scratch
from wrong_kernels import Fault, FaultyPlugin

pytestmark = pytest.mark.slow
FEWEST_TESTS = 20
PLUGINS = {
    file.parent.name: FaultyPlugin(file.parent) for file in THIRD_PARTY.glob("*/faults.toml")
}
FAULTS = [
    pytest.param(plugin, fault, id=f"{name}-{fault.kind}")
    for name, plugin in PLUGINS.items()
    for fault in plugin.faults
]


@pytest.fixture(scope="module")
def judged(
    tmp_path_factory: pytest.TempPathFactory, new_environment: Callable[..., Scratch]
) -> dict[str, dict[str, Any]]:
    """The ops that the suite has ``caught``, each with the first test that failed, and ``passed``,
    with the number of tests that did."""
    folder = tmp_path_factory.mktemp("suite")
    names = ("custom_pypto_build", "custom_pypto_blocks", "custom_pypto_testing")
    environment = new_environment(*names)
    source = wrong_kernels.write([*PLUGINS.values()], folder / "source")
    # The suite loads it again.
    unchecked = {"CUSTOM_PYPTO_BUILD_CHECK": "0"}
    environment.install(environment.build_wheel(source, folder, unchecked))
    wrong_kernels.write_suite([*PLUGINS.values()], folder)
    options = ("-m", "pytest", "-q", "--tb=no", "--custom-pypto-fuzz=100")
    environment.run(*options, folder / "test_suite.py", check=False)
    found: dict[str, dict[str, Any]] = json.loads((folder / "found.json").read_text("utf-8"))
    return found


@pytest.mark.parametrize("name", PLUGINS)
def test_suite_passes(name: str, judged: dict[str, dict[str, Any]]) -> None:
    for op in PLUGINS[name].ops:
        assert op not in judged["caught"], judged["caught"][op]
        assert judged["passed"][op] > FEWEST_TESTS


@pytest.mark.parametrize(("plugin", "fault"), FAULTS)
def test_suite_catches(
    plugin: FaultyPlugin, fault: Fault, judged: dict[str, dict[str, Any]]
) -> None:
    assert plugin.name_of(fault) in judged["caught"]
