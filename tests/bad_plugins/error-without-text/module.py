"""Raises an error whose text cannot be read."""


class OddError(Exception):
    """An error whose text cannot be read."""

    def __str__(self) -> str:
        raise LookupError


raise OddError
