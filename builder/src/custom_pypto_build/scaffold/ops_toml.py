"""The contract of a new op."""

from __future__ import annotations

import json
from collections.abc import Iterator

from .new_plugin import DTYPES, NPU_DTYPES, NewPlugin


def text(made: NewPlugin) -> str:
    """Return ops.toml."""
    return "\n".join(_lines(made)) + "\n"


def summary(made: NewPlugin) -> str:
    """Return what the op does, in a sentence."""
    return f"{' * '.join(made.product)}, element by element"


def definition(made: NewPlugin) -> str:
    """Return the op in PyTorch: computed in float64, rounded once."""
    product = " * ".join(f"{name}.double()" for name in made.product)
    result, count = f"({product}).to({made.first}.dtype)", len(made.outputs)
    return result if count == 1 else f"({result},) * {count}"


def launch(made: NewPlugin) -> str:
    """Return the call of the kernel for NPUs: arguments, then outputs, in the schema's order."""
    names = [*(each.name for each in made.schema.arguments), *made.outputs]
    return f"aclnn{made.kernel}({', '.join(names)})"


def graph(made: NewPlugin) -> str:
    """Return the operator in graphs, whose parameters are called as the arguments."""
    arguments = ", ".join(f"{each.name}={each.name}" for each in made.schema.arguments)
    return f"{made.kernel}({arguments}) -> {', '.join(made.outputs)}"


def _lines(made: NewPlugin) -> Iterator[str]:
    key = made.schema.name
    yield f"# The contract of {key}; docs/contract.md of custom_pypto explains the keys."
    yield ""
    yield f"[{json.dumps(key) if '.' in key else key}]"
    yield f"schema = {json.dumps(made.schema.text)}"
    yield f"summary = {json.dumps(summary(made))}"
    yield f"definition = {json.dumps(definition(made))}"
    yield 'flops = "0"'
    moved = [*(each.name for each in made.factors), *made.outputs]
    yield f'bytes = "{" + ".join(f"{name}.nbytes" for name in moved)}"'
    for each in made.schema.arguments:
        if each.is_tensor:
            dtype = " ".join(DTYPES) if each.name == made.first else f"={made.first}"
            yield f'tensors.{each.name} = {{ shape = "{made.dims}", dtype = "{dtype}" }}'
    for name in made.outputs:
        yield f'outputs.{name} = {{ shape = "{made.dims}", dtype = "={made.first}" }}'
    if made.has_npu:
        check = f"{made.first}.dtype in ({', '.join(NPU_DTYPES)})"
        yield f'npu.limits = [{{ argument = "{made.first}", check = "{check}" }}]'
        yield f'npu.launch = "{launch(made)}"'
        if made.in_graphs:
            yield f'npu.graph = "{graph(made)}"'
