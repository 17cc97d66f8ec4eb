"""Has a hook that raises."""

from collections.abc import Callable, Mapping

from custom_pypto_plugin import hookimpl


@hookimpl
def custom_pypto_fakes() -> Mapping[str, Callable[..., object]]:
    raise LookupError("the shape rules are in another castle")
