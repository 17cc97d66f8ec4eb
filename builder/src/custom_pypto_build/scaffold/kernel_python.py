"""The Python package of a new plugin whose kernel is a Python function."""

from __future__ import annotations

from collections.abc import Iterator

from custom_pypto_contract import python_signature

from custom_pypto_build.ops_module import STAR_IMPORT

from .new_plugin import NewPlugin, free_name

_SOURCE = '''\
"""torch.ops.custom_pypto.{op}: its kernel."""

from __future__ import annotations

from collections.abc import {collections}
from typing import Any

import torch
from custom_pypto_plugin import hookimpl
from torch import Tensor

{star_import}

@hookimpl
def custom_pypto_kernels() -> Mapping[str, Mapping[str, Callable[..., Any]]]:
    """The kernel for every device."""
    return {{"{op}": {{"CompositeExplicitAutograd": _{name}}}}}


def _{name}(
    {parameters},
) -> {returned}:
    {body}
'''


def text(made: NewPlugin) -> str:
    """Return ``__init__.py``."""
    has_list = any("[]" in each.type for each in made.schema.arguments)
    return _SOURCE.format(
        op=made.schema.name,
        name=made.op,
        collections="Callable, Mapping" + ", Sequence" * has_list,
        star_import=STAR_IMPORT,
        parameters=",\n    ".join(python_signature.parameters(made.schema)),
        returned=python_signature.returned(made.schema),
        body="\n    ".join(_body(made)),
    )


def _body(made: NewPlugin) -> Iterator[str]:
    taken = [each.name for each in made.schema.arguments]
    wide = free_name("wide", taken)
    result = free_name("result", [*taken, wide])
    yield f"{wide} = torch.promote_types({made.first}.dtype, torch.float32)"
    product = " * ".join(f"{name}.to({wide})" for name in made.product)
    # A returned tensor has the strides that ops.toml gives it.
    yield f"{result} = ({product}).to({made.first}.dtype).contiguous()"
    yield f"return {', '.join([result, *[f'{result}.clone()'] * (len(made.outputs) - 1)])}"
