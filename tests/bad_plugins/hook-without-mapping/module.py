"""Has a hook that returns a list."""

from custom_pypto_plugin import hookimpl


@hookimpl
def custom_pypto_fakes() -> list[str]:
    return ["hook_without_mapping"]
