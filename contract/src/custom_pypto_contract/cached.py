"""An attribute that is computed once, without the lock that functools' has before Python 3.12."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from functools import cached_property as cached
else:

    class cached:  # noqa: N801
        """Two threads may both compute it; both get the value of the first."""

        def __init__(self, compute: Any) -> None:
            """Take the method that computes it."""
            self._compute = compute
            self.__doc__ = compute.__doc__

        def __get__(self, instance: Any, owner: Any) -> Any:
            """Keep the value in the object, where Python finds it from now on."""
            if instance is None:
                return self
            return vars(instance).setdefault(self._compute.__name__, self._compute(instance))


__all__ = ["cached"]
