"""The file of op-plugin: each op that its import completes becomes a test."""

import functools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from custom_pypto_build.importing import read_files
from custom_pypto_build.importing.model import ImportedOp
from custom_pypto_build.importing.read_files import Sources
from repository import ROOT
from simulated import Simulated

_OPTION = "--op-plugin"
_VARIABLE = "CUSTOM_PYPTO_TEST_OP_PLUGIN"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the option."""
    text = "op_plugin_functions.yaml, or a file of its form"
    parser.addoption(_OPTION, type=Path, default=os.environ.get(_VARIABLE), help=text)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Run op-plugin's own tests where the file lies in a clone of it."""
    is_theirs = collection_path.name == "test_published.py"
    return True if is_theirs and not _published(config).is_dir() else None


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make a test of each op."""
    if "imported" in metafunc.fixturenames:
        found = _complete(metafunc.config)
        metafunc.parametrize("imported", found, ids=[op.name for op in found])


@pytest.fixture(scope="session")
def all_imported(request: pytest.FixtureRequest) -> list[ImportedOp]:
    """Every op that the import completes."""
    return _complete(request.config)


@pytest.fixture(scope="session")
def published(request: pytest.FixtureRequest) -> Path:
    """The folder of op-plugin's own tests."""
    return _published(request.config)


@pytest.fixture(scope="session")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulated]:
    """Forks processes that have torch_npu and core imported."""
    tests = ROOT / "tests"
    started = Simulated(tmp_path_factory.mktemp("machines"), ["op_plugin.launches"], [tests])
    yield started
    started.close()


@functools.cache
def _complete(config: pytest.Config) -> list[ImportedOp]:
    return [op for op in read_files.read(Sources(op_plugin=(_file(config),))).ops if op.is_complete]


def _file(config: pytest.Config) -> Path:
    file = config.getoption(_OPTION)
    if file is None:
        raise pytest.UsageError(
            f"name op-plugin's op_plugin_functions.yaml by {_OPTION} or {_VARIABLE}"
        )
    return Path(file).resolve()


def _published(config: pytest.Config) -> Path:
    return _file(config).parents[1] / "../test/test_custom_ops"
