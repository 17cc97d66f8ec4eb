"""Raises an exception that `except Exception` does not catch."""


class OddError(BaseException):
    """An exception that `except Exception` does not catch."""


raise OddError("not an Exception")
