"""The calls that engines make: the table of docs/serving.md.

A call stands in its engine's sources at the commit or release that the table names.
"""

import re
from pathlib import Path
from typing import Any, NamedTuple

PAGE = Path(__file__).parents[3] / "docs" / "serving.md"


class Call(NamedTuple):
    """A row of the table."""

    engine: str
    name: str
    """The function, as the engine writes it."""
    served: str
    """The function in `custom_pypto_serving`."""
    statement: str
    """How the engine takes the result, as ``x``."""
    op: str
    """Our op."""

    def take(self, result: Any) -> Any:
        """Execute the statement on a result, and return ``x``."""
        names = {"result": result, "x": None}
        exec(self.statement.replace("op(..)", "result"), names)
        assert (names["x"] is None) == (result is None)
        return names["x"]


def _read_calls() -> list[Call]:
    (section,) = re.findall(r"^## The calls\n(.*?)^## ", PAGE.read_text("utf-8"), re.M | re.S)
    rows = [re.split(r" *\| *", line.strip("| ")) for line in section.splitlines()]
    _heads, _rule, *rows = (row for row in rows if len(row) == len(Call._fields))
    return [Call(*(cell.strip("`").removeprefix("….") for cell in row)) for row in rows]


CALLS = _read_calls()
