"""Every op of the loaded plugins, by name: ``custom_pypto_mindspore.ops.add_custom(x, y)``."""

from __future__ import annotations

import custom_pypto.core
import torch
from custom_pypto_discovery.installed_plugin import op_family

from .op import Op


def __getattr__(name: str) -> Op:
    # The op was loaded after this module, or this raises and says why there is no such op.
    getattr(torch.ops.custom_pypto, name)
    op = globals()[name] = Op(name)
    return op


def __dir__() -> list[str]:
    return sorted({op_family(record.name) for record in custom_pypto.core.ops()})


# MindSpore's compiler looks in the module's dictionary.
globals().update({name: Op(name) for name in __dir__()})
