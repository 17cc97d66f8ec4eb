"""The report of ``custom-pypto verify``: one Markdown file, which ends with the same as JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from custom_pypto_cli.report import Report, report_data, report_lines
from custom_pypto_cli.terminal import align
from custom_pypto_discovery.printable import escape_lines

from custom_pypto_testing.verification.checks import OF_MACHINE, OF_OPS, checks_on
from custom_pypto_testing.verification.privacy import hide
from custom_pypto_testing.verification.result import Result, Verdict

FORMAT = 1
CONTENTS = """\
This file holds: the report of `custom-pypto doctor` (versions; folders of Python, CANN and the
plugins; the variables of custom_pypto, of its plugins and of CANN's folders; the names alone of
other variables CUSTOM_PYPTO_*); the NPUs, CANN and the driver; the plugins with their hashes; of
each check the outcome, seconds, numbers, names and shapes of calls, errors, and the last lines that
the process of a failed check printed. It holds no tensors, no other files and no other variables.
Your home folder is written `~`, your user name in paths `<user>`, the name of this machine
`<host>`. Errors are quoted: read it before you send it.
"""


@dataclass
class WrittenReport:
    """Everything that is known so far, and the file that has it."""

    path: Path
    device: str
    began: str
    npus: dict[str, str]
    doctor: Report
    plugins: list[dict[str, Any]]
    results: list[Result] = field(default_factory=list)
    seconds: float | None = None
    """How long the run took; None while it goes on."""

    @property
    def counts(self) -> str:
        """How many checks passed, failed and so on, in one line."""
        counted = Counter(result.verdict for result in self.results)
        return ", ".join(f"{counted[each]} {each.value}" for each in Verdict if counted[each])

    @property
    def has_passed(self) -> bool:
        """Whether every check passed that applies."""
        return all(each.verdict in (Verdict.PASSED, Verdict.NONE) for each in self.results)

    def write(self) -> None:
        """Replace the file, as a whole.

        Raises:
            OSError: it cannot be written.
        """
        part = self.path.with_name(f"{self.path.name}.part")
        part.write_text("\n".join(self._lines()), encoding="utf-8")
        part.replace(self.path)

    def _lines(self) -> Iterator[str]:
        yield "# custom-pypto verify"
        yield ""
        state = "did not end yet" if self.seconds is None else f"ended after {self.seconds:.0f} s"
        yield f"Device {self.device}; began {self.began}, {state}. {self.counts}."
        yield ""
        yield CONTENTS
        yield from self._advice()
        yield "## Checks"
        yield ""
        yield from _table(
            ("op", "check", "outcome", "seconds", ""), map(_row, _by_subject(self.results))
        )
        for result in _by_subject(self.results):
            if result.verdict is Verdict.FAILED:
                title = f"{result.subject}: {result.check}: {result.verdict.value}"
                yield from _section(_plain(title), result.text.split("\n"))
        checks = [*checks_on(self.device, OF_MACHINE), *checks_on(self.device, OF_OPS)]
        legend = align([(check.name, check.what) for check in checks])
        yield from _section("What the checks are", legend)
        yield from _section("NPUs", align(list(self.npus.items())))
        yield from _section("Plugins", align([list(each.values()) for each in self.plugins]))
        yield from _section("custom-pypto doctor", report_lines(self.doctor))
        yield "## The same as JSON"
        yield ""
        yield "```json"
        yield json.dumps(hide(self._data())).replace("\x7f", r"\u007f")
        yield "```"
        yield ""

    def _advice(self) -> Iterator[str]:
        """Yield which of the faster ways the checks allow on this machine, once all have run."""
        for check in OF_OPS if self.seconds is not None else ():
            verdicts = {each.verdict for each in self.results if each.check == check.name}
            if Verdict.FAILED in verdicts and check.switch:
                yield f"{check.switch}=1, for faster launches: an op failed; do not set it here."
                yield ""
            elif Verdict.PASSED in verdicts and check.switch:
                every = "some op was not checked" if Verdict.NOT_RUN in verdicts else "none failed"
                yield f"{check.switch}=1, for faster launches: of the ops below {every}."
                yield ""

    def _data(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "device": self.device,
            "began": self.began,
            "seconds": self.seconds,
            "passed": self.has_passed and self.seconds is not None,
            "npus": self.npus,
            "plugins": self.plugins,
            "doctor": report_data(self.doctor),
            "checks": [{**asdict(each), "verdict": each.verdict.value} for each in self.results],
        }


def _by_subject(results: Sequence[Result]) -> Iterator[Result]:
    for subject in dict.fromkeys(each.subject for each in results):
        yield from (each for each in results if each.subject == subject)


def _row(result: Result) -> tuple[str, ...]:
    cells = (result.subject, result.check, result.verdict.value)
    return (*cells, f"{result.seconds:.1f}", result.brief)


def _table(headings: Sequence[str], rows: Iterator[tuple[str, ...]]) -> Iterator[str]:
    for row in (headings, ["---"] * len(headings), *rows):
        yield f"| {' | '.join(_plain(cell).replace('|', chr(92) + '|') for cell in row)} |"
    yield ""


def _section(title: str, lines: Iterator[str] | list[str]) -> Iterator[str]:
    """Yield lines below a title, indented: Markdown shows them as they are."""
    yield f"## {title}"
    yield ""
    yield from (f"    {_plain(line)}".rstrip() for line in lines)
    yield ""


def _plain(text: str) -> str:
    return escape_lines(str(hide(text)))
