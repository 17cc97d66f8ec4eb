"""The Python package of a new plugin: its kernel in Python, and its derivative."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from custom_pypto_contract import python_signature

from custom_pypto_build.ops_module import STAR_IMPORT

from .new_plugin import NewPlugin, free_name


def text(made: NewPlugin) -> str:
    """Return ``__init__.py``."""
    return "\n".join(_lines(made)) + "\n"


def _lines(made: NewPlugin) -> Iterator[str]:
    variant = made.variant
    op = made.schema.name
    parts = ["kernel"] * variant.is_python + ["derivative"] * variant.has_backward
    yield f'"""torch.ops.custom_pypto.{op}: its {" and its ".join(parts)}."""'
    yield ""
    yield "from __future__ import annotations"
    yield ""
    collections = ["Callable"] * variant.is_python + ["Mapping"]
    if variant.is_python and any("[]" in each.type for each in made.schema.arguments):
        collections.append("Sequence")
    yield f"from collections.abc import {', '.join(collections)}"
    yield "from typing import Any"
    yield ""
    yield from ["import torch"] * variant.is_python
    hooks = ["Autograd"] * variant.has_backward + ["hookimpl"]
    yield f"from custom_pypto_plugin import {', '.join(hooks)}"
    yield "from torch import Tensor"
    yield ""
    yield STAR_IMPORT.rstrip()
    if variant.is_python:
        yield from _kernel_hook(made)
    if variant.has_backward:
        yield from _autograd_hook(made)
    if variant.is_python:
        yield from _kernel(made)
    if variant.has_backward:
        yield from _backward(made)


def _kernel_hook(made: NewPlugin) -> Iterator[str]:
    yield from ("", "", "@hookimpl")
    yield "def custom_pypto_kernels() -> Mapping[str, Mapping[str, Callable[..., Any]]]:"
    yield '    """The kernel for every device."""'
    yield f'    return {{"{made.schema.name}": {{"CompositeExplicitAutograd": _{made.op}}}}}'


def _autograd_hook(made: NewPlugin) -> Iterator[str]:
    yield from ("", "", "@hookimpl")
    yield "def custom_pypto_autograd() -> Mapping[str, Autograd]:"
    names = ", ".join(each.name for each in made.factors)
    yield f'    """The derivative by {names}."""'
    yield f'    return {{"{made.schema.name}": Autograd(_backward, setup_context=_setup_context)}}'


def _kernel(made: NewPlugin) -> Iterator[str]:
    taken = [each.name for each in made.schema.arguments]
    wide = free_name("wide", taken)
    result = free_name("result", [*taken, wide])
    yield from ("", "")
    parameters = list(python_signature.parameters(made.schema))
    yield from _function(f"_{made.op}", parameters, python_signature.returned(made.schema))
    yield f"    {wide} = torch.promote_types({made.first}.dtype, torch.float32)"
    product = " * ".join(f"{name}.to({wide})" for name in made.product)
    # A returned tensor has the strides that ops.toml gives it.
    dense = ".contiguous()" if made.outputs else ""
    yield f"    {result} = ({product}).to({made.first}.dtype){dense}"
    yield from (f"    {each.name}.copy_({result})" for each in made.written)
    copies = [f"{result}.clone()"] * (len(made.outputs) - 1)
    if made.outputs:
        yield f"    return {', '.join([result, *copies])}"


def _function(name: str, parameters: Sequence[str], result: str) -> Iterator[str]:
    line = f"def {name}({', '.join(parameters)}) -> {result}:"
    if len(line) <= 88:
        yield line
    else:
        yield f"def {name}("
        yield from (f"    {each}," for each in parameters)
        yield f") -> {result}:"


def _backward(made: NewPlugin) -> Iterator[str]:
    arguments = made.schema.arguments
    positional = [each for each in arguments if not each.is_keyword_only]
    grads = ["grad"] if len(made.outputs) == 1 else [f"grad{i}" for i in range(len(made.outputs))]
    parameters = ["ctx: Any", "inputs: tuple[Any, ...]"]
    if len(positional) < len(arguments):
        parameters.append("keyword_only_inputs: Mapping[str, Any]")
    parameters.append(f"output: {python_signature.returned(made.schema)}")
    saved = [f"inputs[{positional.index(each)}]" for each in made.factors]
    yield from ("", "")
    yield from _function("_setup_context", parameters, "None")
    yield f"    ctx.save_for_backward({', '.join(saved)})"
    annotated = ", ".join(f"{each}: Tensor" for each in grads)
    yield from ("", "", f"def _backward(ctx: Any, {annotated}) -> Any:")
    locals_: dict[str, str] = {}
    for each in made.factors:
        locals_[each.name] = free_name(each.name, [*grads, "ctx", "torch", *locals_.values()])
    targets = ", ".join(locals_.values())
    yield f"    {targets}{',' * (len(locals_) == 1)} = ctx.saved_tensors"
    if len(grads) > 1:
        total = free_name("grad", locals_.values())
        yield f"    {total} = {' + '.join(grads)}"
        grads = [total]
    results = []
    for each in positional:
        if each not in made.factors:
            results.append("None")
            continue
        others = [locals_[name] for name in locals_ if name != each.name]
        results.append(" * ".join([grads[0], *(others or ["2", locals_[each.name]])]))
    yield f"    return {', '.join(results)}"
