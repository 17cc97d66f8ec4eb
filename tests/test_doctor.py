"""custom-pypto doctor where a plugin ends the process; test_install.py has good installations."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from scratch import Scratch


@pytest.fixture(scope="module")
def with_two(new_environment: Callable[..., Scratch]) -> Scratch:
    """An environment with two plugins."""
    return new_environment("custom_pypto_add_custom", "custom_pypto_lightning_indexer")


@pytest.fixture
def module(with_two: Scratch) -> Iterator[Path]:
    """The module of one of them. The test may write it."""
    file = with_two.site_packages / "custom_pypto_lightning_indexer" / "__init__.py"
    text = file.read_text(encoding="utf-8")
    yield file
    file.write_text(text, encoding="utf-8")


def plugins(environment: Scratch) -> dict[str, dict[str, str]]:
    """The doctor's report of the plugins, by name."""
    done = environment.custom_pypto("doctor", "--json", check=False)
    found = json.loads(done.stdout)["sections"]["plugins"]
    return {probe["name"]: probe for probe in found}


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        ("os.kill(os.getpid(), signal.SIGSEGV)", "crashed with SIGSEGV"),
        ("os._exit(0)", "ended with status 0 before it was done, as a call of exit() does"),
    ],
)
def test_a_plugin_that_ends_the_process_is_found(
    with_two: Scratch, module: Path, end: str, reason: str
):
    module.write_text(f"import os, signal; {end}\n")

    found = plugins(with_two)

    core = found["import custom_pypto.core"]
    assert core["value"] == "works only without lightning_indexer"
    assert core["advice"].startswith("set CUSTOM_PYPTO_DISABLE=lightning_indexer;")
    assert found["add_custom"]["level"] == "ok"
    remark = found["lightning_indexer"]["remark"]
    assert f"failed: loading it ended the process: {reason}" in remark
    assert "set CUSTOM_PYPTO_DISABLE=lightning_indexer, or pip uninstall" in remark
