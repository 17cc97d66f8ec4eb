"""Text in aligned columns."""

from __future__ import annotations

from collections.abc import Sequence

from custom_pypto_discovery.printable import printable

GAP = "  "


def align(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return one line for each row, with printable cells in columns aligned to the left.

    Rows may differ in length; the last cell of a row never widens a column, and no line ends in
    blanks.
    """
    rows = [[printable(cell) for cell in row] for row in rows]
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
