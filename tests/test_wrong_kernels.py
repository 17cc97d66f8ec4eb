"""The conformance suite passes plugins as other people write them, and catches each fault in them.

Beside each plugin is faults.toml, a table of kinds of fault. Every wrong kernel is right but for
one place, compiles, and reads and writes allocated memory only.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from repository import copy_sources
from scratch import Scratch
from wrong_kernels import THIRD_PARTY, Fault, FaultyPlugin

KINDS = {
    "offset",
    "stride",
    "tail",
    "threads",
    "dtype",
    "alias",
    "uninitialised output",
    "wrong refusal",
}
PLUGINS = {
    file.parent.name: FaultyPlugin(file.parent) for file in THIRD_PARTY.glob("*/faults.toml")
}
FAULTS = [
    pytest.param(plugin, fault, id=f"{name}-{fault.kind}")
    for name, plugin in PLUGINS.items()
    for fault in plugin.faults
]


@pytest.mark.parametrize("name", PLUGINS)
def test_suite_passes(name: str, with_plugin: Callable[..., Scratch], tmp_path: Path) -> None:
    environment = with_plugin(copy_sources(THIRD_PARTY / name, tmp_path / name))
    environment.expect_passes("custom_pypto_testing", f"acme_{name}", "-k", "not inductor")


@pytest.fixture(scope="module")
def caught(
    tmp_path_factory: pytest.TempPathFactory, with_plugin: Callable[..., Scratch]
) -> Callable[[FaultyPlugin], dict[str, str]]:
    """The faulty ops of a plugin that the suite catches, each with the first test that does."""
    results: dict[FaultyPlugin, dict[str, str]] = {}

    def run(plugin: FaultyPlugin) -> dict[str, str]:
        if plugin not in results:
            folder = plugin.write(tmp_path_factory.mktemp("faults") / plugin.source.name)
            # The others judge what makes graphs of the op, and the fuzzer takes longest.
            judging = "not (inductor or compiles or exports or opcheck or symbolic or fuzzed)"
            environment = with_plugin(folder)
            done = environment.run("-m", "pytest", "-q", "-k", judging, folder, check=False)
            results[plugin] = dict(re.findall(r"^caught (\w+) (.*)$", done.stdout, re.MULTILINE))
        return results[plugin]

    return run


def test_every_kind_of_fault_is_tried_in_every_plugin() -> None:
    assert {
        name: {each.kind for each in plugin.faults} for name, plugin in PLUGINS.items()
    } == dict.fromkeys(PLUGINS, KINDS)


@pytest.mark.parametrize(("plugin", "fault"), FAULTS)
def test_suite_catches(
    plugin: FaultyPlugin, fault: Fault, caught: Callable[[FaultyPlugin], dict[str, str]]
) -> None:
    assert plugin.name(fault) in caught(plugin)
