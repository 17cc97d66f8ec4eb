"""Has a fake for an op of another plugin."""

from collections.abc import Callable, Mapping

import torch
from custom_pypto_plugin import hookimpl


@hookimpl
def custom_pypto_fakes() -> Mapping[str, Callable[..., object]]:
    return {"add_custom": torch.add}
