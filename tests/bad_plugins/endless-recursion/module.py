"""Recurses without an end."""


def again() -> None:
    """Call itself."""
    again()


again()
