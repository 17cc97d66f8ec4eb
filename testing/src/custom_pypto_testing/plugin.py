"""The pytest plugin: options for devices and the fuzzer, reports, and the stand-in for torchair.

It imports neither torch nor core.
"""

from __future__ import annotations

import re
import sys
import sysconfig
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from _pytest._code import Traceback

    from .fuzzing import Series
    from .torchair_graph import Graph

OPTION = "--custom-pypto-device"
FUZZ_OPTION = "--custom-pypto-fuzz"
UNCHECKED = "unchecked"
"""The property of a test that says what it did not check."""
_SUITE = f"{__package__}.conformance"
_NOT_THE_AUTHORS = ("_pytest", "custom_pypto", "custom_pypto_testing", "pluggy", "torch")
_TRACE = re.compile(r"^DEBUG +torch\.__trace:.*\n?", re.MULTILINE)
"""What torch logs of each step of a compilation."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options, which `devices` and `fuzz_series` read."""
    group = parser.getgroup("custom_pypto")
    group.addoption(
        OPTION,
        action="append",
        metavar="DEVICE",
        help="device that custom_pypto_testing.Conformance runs on (for example npu); may be given"
        " more than once; default: cpu",
    )
    group.addoption(
        FUZZ_OPTION,
        metavar="CALLS[,SEED[,FIRST]]",
        help="how many random calls custom_pypto_testing.Conformance makes of each op, of which"
        " seed, beginning with which number; prints a table at the end; default: 2000,0,0",
    )


def devices(config: pytest.Config) -> list[str]:
    """The devices chosen on the command line; cpu when none is."""
    return config.getoption(OPTION, default=None) or ["cpu"]


def fuzz_series(config: pytest.Config) -> Series:
    """The random calls chosen on the command line, or the default ones.

    Raises:
        pytest.UsageError: the option is no such numbers.
    """
    from .fuzzing import Series

    given = config.getoption(FUZZ_OPTION, default=None)
    try:
        return Series() if given is None else Series.parse(given)
    except ValueError as error:
        raise pytest.UsageError(f"{FUZZ_OPTION}: {error}") from None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[Any]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the author's frames alone of a failure of the suite, unless pytest was told how."""
    report = yield
    is_ours = getattr(getattr(item, "function", None), "__module__", "") == _SUITE
    options = item.config.option
    is_as_usual = options.tbstyle == "auto" and not options.fulltrace
    if report.failed and is_ours and call.excinfo is not None and is_as_usual:
        report.longrepr = call.excinfo.getrepr(style="short", tbfilter=_of_author)
        captured = [(name, _TRACE.sub("", text)) for name, text in report.sections]
        report.sections = [(name, text) for name, text in captured if text]
    return report


def _of_author(excinfo: pytest.ExceptionInfo[BaseException]) -> Traceback:
    """Leave out the frames of our code, torch, pytest and Python, and of code without a file."""
    modules = map(sys.modules.get, _NOT_THE_AUTHORS)
    folders = [path for module in modules for path in getattr(module, "__path__", ())]
    others = (sysconfig.get_path("stdlib"), *folders, "<")
    return excinfo.traceback.filter(lambda each: not str(each.path).startswith(others))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print what tests did not check, and the fuzzer's table if its option is given."""
    unchecked = _properties(terminalreporter, UNCHECKED)
    if unchecked:
        terminalreporter.section("not checked")
        for text in unchecked:
            terminalreporter.line(text)
    if config.getoption(FUZZ_OPTION, default=None) is not None:
        _print_fuzzed(terminalreporter, _properties(terminalreporter, "fuzzed"))


def _properties(terminalreporter: Any, name: str) -> list[Any]:
    """Return the values of a property of all tests."""
    return [
        value
        for reports in terminalreporter.stats.values()
        for each in reports
        for key, value in getattr(each, "user_properties", ())
        if key == name and each.when == "call"
    ]


def _print_fuzzed(terminalreporter: Any, rows: list[Any]) -> None:
    if not rows:
        return
    table = [[*rows[0]], *([str(cell) for cell in row.values()] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    terminalreporter.section("fuzzed calls")
    for op, *cells in table:
        numbers = (cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True))
        terminalreporter.line("  ".join((op.ljust(widths[0]), *numbers)))


@pytest.fixture
def torchair_graph(monkeypatch: pytest.MonkeyPatch) -> Iterator[Graph]:
    """Records the nodes of converters that are imported meanwhile; torchair is a stand-in."""
    from .torchair_graph import stand_in

    with stand_in(monkeypatch) as graph:
        yield graph
