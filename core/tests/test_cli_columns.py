"""custom_pypto_cli.columns: align columns."""

from __future__ import annotations

from custom_pypto_cli.columns import align


def test_columns_start_at_the_same_place():
    assert align([("a", "x"), ("long", "y")]) == ["a     x", "long  y"]


def test_the_last_cell_of_a_row_does_not_widen_a_column():
    assert align([("a", "b", "c"), ("a very long lone cell",)]) == [
        "a  b  c",
        "a very long lone cell",
    ]


def test_lines_do_not_end_in_blanks():
    assert align([("name", ""), ("n", "value")]) == ["name", "n     value"]


def test_no_rows_give_no_lines():
    assert align([]) == []


def test_a_cell_stays_on_its_line_and_in_its_column():
    assert align([("a\nb", "x"), ("long", "y\x1b[2K")]) == ["a\\nb  x", "long  y\\x1b[2K"]
