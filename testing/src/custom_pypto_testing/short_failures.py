"""Failures of the suite in few lines: what is wrong, and where the author's code was meanwhile."""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from traceback import FrameSummary, extract_tb
from typing import Any

import pytest

_SUITE = f"{__package__}.conformance"
_MOST_LINES = 36
"""A failure has pytest's own lines too, and fewer than 40 together."""
_MOST_CAPTURED = 6
_MOST_FRAMES = 4
_TRACE = "DEBUG    torch.__trace:"
_OTHERS = ("_pytest", "custom_pypto", "custom_pypto_testing", "pluggy", "torch")


def shorten(item: pytest.Item, call: pytest.CallInfo[Any], report: pytest.TestReport) -> None:
    """Replace the traceback of a failed test of the suite, unless pytest was asked for one."""
    is_ours = getattr(getattr(item, "function", None), "__module__", "") == _SUITE
    options = item.config.option
    if not is_ours or call.excinfo is None or options.tbstyle != "auto" or options.fulltrace:
        return
    captured = ((name, _without_traces(text)) for name, text in report.sections)
    report.sections = [(name, _crop(text, _MOST_CAPTURED)) for name, text in captured if text]
    left = _MOST_LINES - sum(1 + len(text.splitlines()) for _, text in report.sections)
    frames = [*_frames_of_author(call.excinfo.value)][-_MOST_FRAMES:]
    shown = [f"{each.filename}:{each.lineno}: {each.line}" for each in frames]
    if shown:
        shown = ["", "The author's code that was running:", *shown]
    text = f"{call.excinfo.typename}: {call.excinfo.value}"
    made: Any = call.excinfo.getrepr(style="value", chain=False)
    [entry] = made.reprtraceback.reprentries
    entry.lines = [
        *(f"E   {line}".rstrip() for line in _crop(text, left - len(shown)).splitlines()),
        *shown,
    ]
    report.longrepr = made


def _without_traces(text: str) -> str:
    """Leave out what torch logs of each graph."""
    return "\n".join(line for line in text.splitlines() if not line.startswith(_TRACE))


def _crop(text: str, most: int) -> str:
    """Leave lines out between the first and the last ones."""
    lines = text.splitlines()
    if len(lines) <= most:
        return text
    first = most * 3 // 4
    left_out = f"... {len(lines) - most + 1} lines are left out; --tb=long shows them ..."
    return "\n".join([*lines[:first], left_out, *lines[first + len(lines) - most + 1 :]])


def _frames_of_author(error: BaseException) -> Iterator[FrameSummary]:
    """Yield the frames of an error and its causes that are in no code of ours, torch or Python."""
    others = [str(Path(sysconfig.get_path("stdlib")))]
    modules = map(sys.modules.get, _OTHERS)
    others += (folder for module in modules for folder in getattr(module, "__path__", ()))
    while True:
        for frame in extract_tb(error.__traceback__):
            if frame.line and not frame.filename.startswith(tuple(others)):
                yield frame
        if error.__cause__ is None:
            return
        error = error.__cause__
