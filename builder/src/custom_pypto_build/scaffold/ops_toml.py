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
    product = " * ".join(made.product)
    written = " and ".join(each.name for each in made.written)
    return f"{product}, element by element" + (f", written into {written}" if written else "")


def definition(made: NewPlugin) -> str:
    """Return the op in PyTorch: computed in float64, rounded once."""
    product = " * ".join(f"{name}.double()" for name in made.product)
    count = len(made.outputs)
    result = f"({product}).to({made.first}.dtype)"
    if not made.written:
        return result if count == 1 else f"({result},) * {count}"
    # copy_ rounds; so that all have the old values, the product is computed before.
    if not count:
        if len(made.written) == 1:
            return f"[{made.written[0].name}.copy_({product})] and None"
        result = f"({product})"
    names = ", ".join(each.name for each in made.written)
    copies = f"[each.copy_(product) for each in [{names}]]"
    returned = {0: "None", 1: "product"}.get(count, f"(product,) * {count}")
    return f"[{copies} and {returned} for product in [{result}]][0]"


def launch(made: NewPlugin) -> str:
    """Return the call of the kernel for NPUs: arguments, then outputs, in the schema's order."""
    names = [*(each.name for each in made.schema.arguments), *made.outputs]
    return f"aclnn{made.kernel}({', '.join(names)})"


def graph(made: NewPlugin) -> str:
    """Return the operator in graphs, whose parameters are called as the arguments."""
    arguments = ", ".join(f"{each.name}={each.name}" for each in made.schema.arguments)
    results = made.outputs or tuple(each.name for each in made.written)
    return f"{made.kernel}({arguments}) -> {', '.join(results)}"


def _lines(made: NewPlugin) -> Iterator[str]:
    key = made.schema.name
    yield f"# The contract of {key}; docs/contract.md of custom_pypto explains the keys."
    yield ""
    yield f"[{json.dumps(key) if '.' in key else key}]"
    yield f"schema = {json.dumps(made.schema.text)}"
    yield f"summary = {json.dumps(summary(made))}"
    yield f"definition = {json.dumps(definition(made))}"
    yield 'flops = "0"'
    read = [each.name for each in made.factors]
    moved = [*read, *(each.name for each in made.written), *made.outputs]
    yield f'bytes = "{" + ".join(f"{name}.nbytes" for name in moved)}"'
    for each in made.schema.arguments:
        if each.is_tensor:
            is_first = each.name == made.first
            dtype = " ".join(DTYPES) if is_first else f"={made.first}"
            # The kernel in C++ writes into the memory as it is.
            is_dense = each in made.written and not made.is_python
            strides = ', strides = "contiguous"' if is_dense else ""
            yield f'tensors.{each.name} = {{ shape = "{made.dims}", dtype = "{dtype}"{strides} }}'
    for name in made.outputs:
        yield f'outputs.{name} = {{ shape = "{made.dims}", dtype = "={made.first}" }}'
    if made.has_npu:
        check = f"{made.first}.dtype in ({', '.join(NPU_DTYPES)})"
        yield f'npu.limits = [{{ argument = "{made.first}", check = "{check}" }}]'
        yield f'npu.launch = "{launch(made)}"'
        if made.in_graphs:
            yield f'npu.graph = "{graph(made)}"'
