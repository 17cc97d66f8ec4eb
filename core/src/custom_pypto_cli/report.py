"""The report of ``custom-pypto doctor`` and ``custom-pypto check``: checks in sections."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from custom_pypto_cli.terminal import align, show, show_json


@dataclass(frozen=True)
class Check:
    """One line of the report: a name, a value and, if that is wrong, the remedy."""

    name: str
    value: str
    level: str = "ok"
    """``ok``, ``note`` (ops can be used all the same) or ``problem``."""
    remark: str = ""
    """The problem, or a remark; empty when all is well."""
    advice: str = ""
    """The remedy; present whenever there is a remark."""

    def with_note(self, remark: str, advice: str) -> Check:
        """Return this check with a remark which is no problem."""
        return replace(self, level="note", remark=remark, advice=advice)

    def with_problem(self, problem: str, advice: str) -> Check:
        """Return this check as a problem."""
        return replace(self, level="problem", remark=problem, advice=advice)


Report = Mapping[str, Sequence[Check]]
"""The checks of each section, by its title."""


def report_lines(report: Report) -> Iterator[str]:
    """Yield the report as text, a title and a table for each section."""
    for title, checks in report.items():
        yield title
        table = align([(check.name, check.value) for check in checks])
        for check, line in zip(checks, table, strict=True):
            yield f"  {line}"
            if check.remark:
                separator = "\n" if "\n" in check.remark else "; "
                remark = f"{check.level}: {check.remark}{separator}{check.advice}"
                yield from (f"    {line}" for line in remark.splitlines())
        yield ""


def report_data(report: Report) -> dict[str, list[dict[str, str]]]:
    """Return the report as plain data."""
    return {title: list(map(asdict, checks)) for title, checks in report.items()}


def show_report(
    report: Report, *, as_json: bool, healthy: str = "Healthy: no problem was found."
) -> int:
    """Print `report`, at its end `healthy` if there is no problem; return 1 if there is one."""
    levels = [check.level for checks in report.values() for check in checks]
    problems = levels.count("problem")
    if as_json:
        show_json({"healthy": not problems, "sections": report_data(report)})
    else:
        found = f"{problems} problem{'s' if problems > 1 else ''} found"
        conclusion = f"{found}: see the lines with 'problem:'." if problems else healthy
        show("\n".join([*report_lines(report), conclusion]))
    return 1 if problems else 0
