"""The report of ``custom-pypto verify``: one Markdown file, which ends with the same as JSON."""

from __future__ import annotations

import getpass
import json
import re
import socket
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any

from custom_pypto_cli.report import Report, report_data, report_lines
from custom_pypto_cli.terminal import align
from custom_pypto_contract import variables
from custom_pypto_contract.replace_file import replace_file
from custom_pypto_discovery.printable import escape_lines

FORMAT = 2
FASTER = (variables.NPU_ALLOCATION, variables.NPU_EXECUTOR_CACHE)
"""What makes launches faster, and is off unless a run switches it on: the report says whether this
machine may have it."""
SWITCHED = (*((switch,) for switch in FASTER), FASTER)
"""The switches that are on together in a run: each alone, and all."""
CONTENTS = """\
This file holds: the report of `custom-pypto doctor` (versions; folders of Python, CANN and the
plugins; the variables of custom_pypto, of its plugins and of CANN's folders; the names alone of
other variables CUSTOM_PYPTO_*); the NPUs, CANN and the driver; the plugins with their hashes; of
each check the outcome, seconds, names and shapes of calls, errors, and the last lines that
the process of a failed check printed. It holds no tensors, no other files and no other variables.
Your home folder is written `~`, your user name in paths `<user>`, the name of this machine
`<host>`. Errors are quoted: read it before you send it.
"""


class Verdict(Enum):
    """What a check says."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_RUN = "not run"
    NONE = "does not apply"
    """The op lacks what is checked, by its author's decision."""


@dataclass(frozen=True)
class Result:
    """One line of the report."""

    subject: str
    """The op, ``machine``, or ``plugin <name>``."""
    setting: str
    """The variables that the check's process had, beside the user's."""
    check: str
    verdict: Verdict
    text: str
    """What was done; for a failure, the whole story."""
    seconds: float = 0.0

    @property
    def switches(self) -> str:
        """The part of `setting` after the variable of torch_npu's queue."""
        return self.setting.partition(" ")[2]

    @property
    def cells(self) -> tuple[str, ...]:
        """The cells of a row; of a long text, the beginning of its first line."""
        # Hide before cutting: a part of a name would not be found.
        brief = str(hide(self.text.partition("\n")[0]))
        brief = brief if len(brief) <= 200 else f"{brief[:197]}..."
        seconds = f"{self.seconds:.1f}"
        return self.subject, self.setting, self.check, self.verdict.value, seconds, brief


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
        replace_file(self.path, "\n".join(self._lines()))

    def _lines(self) -> Iterator[str]:
        state = "did not end yet" if self.seconds is None else f"ended after {self.seconds:.0f} s"
        opening = f"Device {self.device}; began {self.began}, {state}. {self.counts}."
        yield from ("# custom-pypto verify", "", opening, "", CONTENTS, *self._advice())
        yield from ("## Checks", "")
        order = [*dict.fromkeys(each.subject for each in self.results)]
        results = sorted(self.results, key=lambda each: order.index(each.subject))
        headings = ("op", "with", "check", "outcome", "seconds", "")
        yield from _table((headings, ["---"] * len(headings), *(each.cells for each in results)))
        for result in results:
            if result.verdict is Verdict.FAILED:
                title = ": ".join(filter(None, result.cells[:4]))
                yield from _section(_plain(title), result.text.split("\n"))
        yield from _section("NPUs", align(list(self.npus.items())))
        yield from _section("Plugins", align([list(each.values()) for each in self.plugins]))
        yield from _section("custom-pypto doctor", report_lines(self.doctor))
        data = json.dumps(hide(self._data())).replace("\x7f", r"\u007f")
        yield from ("## The same as JSON", "", "```json", data, "```", "")

    def _advice(self) -> Iterator[str]:
        """Yield which of the faster ways the checks allow on this machine, once all have run."""
        for switches in SWITCHED if self.seconds is not None else ():
            setting = " ".join(f"{switch}=1" for switch in switches)
            verdicts = {each.verdict for each in self.results if each.switches == setting}
            if Verdict.FAILED in verdicts:
                text = "do not set this here, because an op failed"
            elif Verdict.NOT_RUN in verdicts:
                text = "not decided, because some op below was not checked"
            else:
                text = "set this for the ops below; none failed"
            if verdicts & {Verdict.FAILED, Verdict.PASSED}:
                yield from (f"{setting}, for faster launches: {text}.", "")

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


def hide(value: Any) -> Any:
    """Return a text, or plain data with texts, without the user, the host and the home folder."""
    if isinstance(value, str):
        for pattern, instead in _patterns():
            value = pattern.sub(instead, value)
        return value
    if isinstance(value, dict):
        return {hide(name): hide(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [hide(each) for each in value]
    return value


@cache
def _patterns() -> list[tuple[re.Pattern[str], str]]:
    found = {r"/home/[^/\s'\":;,]+": "~"}
    if len(home := str(Path.home())) > 1:
        found = {rf"{re.escape(home)}(?![\w.-])": "~", **found}
    try:
        user = getpass.getuser()
    except (OSError, KeyError):
        user = ""
    # A name of a part of a path only: it may be an ordinary word.
    if user:
        found[rf"/{re.escape(user)}(?![\w.-])"] = "/<user>"
    if host := socket.gethostname():
        # The whole name first: the short name is its beginning.
        for name in dict.fromkeys((host, host.partition(".")[0])):
            found[rf"(?<![\w.-]){re.escape(name)}(?![\w-])"] = "<host>"
    return [(re.compile(pattern), instead) for pattern, instead in found.items()]


def _table(rows: Iterable[Sequence[str]]) -> Iterator[str]:
    for row in rows:
        yield f"| {' | '.join(_plain(cell).replace('|', chr(92) + '|') for cell in row)} |"
    yield ""


def _section(title: str, lines: Iterable[str]) -> Iterator[str]:
    """Yield lines below a title, indented: Markdown shows them as they are."""
    yield from (f"## {title}", "", *(f"    {_plain(line)}".rstrip() for line in lines), "")


def _plain(text: str) -> str:
    return escape_lines(str(hide(text)))
