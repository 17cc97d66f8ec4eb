"""Aligned text."""

from __future__ import annotations

from collections.abc import Sequence

GAP = "  "


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return one line for each row, with the columns aligned to the left.

    Rows may differ in length; the last cell of a row never widens a column, and no line ends in
    blanks.
    """
    widths: dict[int, int] = {}
    for row in rows:
        for column, cell in enumerate(row[:-1]):
            widths[column] = max(widths.get(column, 0), len(cell))
    return [
        GAP.join(
            cell.ljust(widths[column]) if column < len(row) - 1 else cell
            for column, cell in enumerate(row)
        ).rstrip()
        for row in rows
    ]
