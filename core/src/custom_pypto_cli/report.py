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


def show_report(report: Report, *, as_json: bool) -> int:
    """Print `report`; return the exit status: 1 when it has a problem."""
    levels = [probe.level for probes in report.values() for probe in probes]
    problems = levels.count(Level.PROBLEM)
    if as_json:
        sections = {
            title: [{**asdict(probe), "level": probe.level.value} for probe in probes]
            for title, probes in report.items()
        }
        show_json({"healthy": not problems, "sections": sections})
    else:
        show("\n".join([*_lines(report), _conclusion(problems)]))
    return 1 if problems else 0


def _lines(report: Report) -> Iterator[str]:
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


def _conclusion(problems: int) -> str:
    if not problems:
        return "Healthy: no problem was found."
    return f"{problems} problem{'s' if problems > 1 else ''} found: see the lines with 'problem:'."
