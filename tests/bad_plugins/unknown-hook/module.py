"""Has a hook that core does not know."""

from custom_pypto_plugin import hookimpl


@hookimpl
def custom_pypto_fake() -> dict[str, object]:
    return {}
