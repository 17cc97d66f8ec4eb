"""The file of op-plugin: each op that its import completes becomes a test."""

import functools
import os
from pathlib import Path

import pytest
from custom_pypto_build.importing import read_files
from custom_pypto_build.importing.model import ImportedOp
from custom_pypto_build.importing.read_files import Sources

_OPTION = "--op-plugin"
_VARIABLE = "CUSTOM_PYPTO_TEST_OP_PLUGIN"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the option."""
    text = "op_plugin_functions.yaml, or a file of its form"
    parser.addoption(_OPTION, type=Path, default=os.environ.get(_VARIABLE), help=text)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make a test of each op."""
    if "imported" in metafunc.fixturenames:
        found = _complete(metafunc.config)
        metafunc.parametrize("imported", found, ids=[op.name for op in found])


@pytest.fixture(scope="session")
def all_imported(request: pytest.FixtureRequest) -> list[ImportedOp]:
    """Every op that the import completes."""
    return _complete(request.config)


@functools.cache
def _complete(config: pytest.Config) -> list[ImportedOp]:
    file = config.getoption(_OPTION)
    if file is None:
        raise pytest.UsageError(
            f"name op-plugin's op_plugin_functions.yaml by {_OPTION} or {_VARIABLE}"
        )
    return [op for op in read_files.read(Sources(op_plugin=(file,))).ops if op.is_complete]
