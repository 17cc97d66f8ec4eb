"""A report of probes in sections, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict

from custom_pypto_cli.columns import align
from custom_pypto_cli.probes.probe import Level, Probe, append_sentence
from custom_pypto_cli.terminal import show, show_json

Report = Mapping[str, Sequence[Probe]]
"""The probes of each section, by its title."""

# An advice of more characters is printed once.
_LONG = 80


def report_lines(report: Report) -> Iterator[str]:
    """Yield the report as text, a title and a table for each section."""
    given: set[str] = set()
    for title, probes in report.items():
        yield title
        table = align([(probe.name, probe.value) for probe in probes])
        for probe, line in zip(probes, table, strict=True):
            yield f"  {line}"
            if probe.remark:
                # One cause often shows in several places.
                advice = "see above what to do" if probe.advice in given else probe.advice
                if len(probe.advice) > _LONG:
                    given.add(probe.advice)
                remark = append_sentence(f"{probe.level.value}: {probe.remark}", advice)
                yield from (f"    {line}" for line in remark.splitlines())
        yield ""


def report_data(report: Report) -> dict[str, list[dict[str, str]]]:
    """Return the report as plain data."""
    return {
        title: [{**asdict(probe), "level": probe.level.value} for probe in probes]
        for title, probes in report.items()
    }


def show_report(report: Report, *, as_json: bool) -> int:
    """Print `report`; return the exit status: 1 when it has a problem."""
    levels = [probe.level for probes in report.values() for probe in probes]
    problems = levels.count(Level.PROBLEM)
    if as_json:
        show_json({"healthy": not problems, "sections": report_data(report)})
    else:
        show("\n".join([*report_lines(report), _conclusion(problems)]))
    return 1 if problems else 0


def _conclusion(problems: int) -> str:
    if not problems:
        return "Healthy: no problem was found."
    return f"{problems} problem{'s' if problems > 1 else ''} found: see the lines with 'problem:'."
