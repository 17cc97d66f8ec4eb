"""Checks what must be installed, and says how to install it."""

from __future__ import annotations

import importlib
import importlib.metadata
import inspect
import operator

from packaging.version import Version

# The first that was tested, and the newest.
MINIMUM = "2.10.0"
_INSTALL = f"pip install 'mindspore>={MINIMUM}'"

# The private parts of MindSpore that are used, with the parameters of functions.
USED = {
    "mindspore.common": (
        "_Function.apply(args,kwargs) _Function.mark_dirty(args) _Function.saved_tensors"
        " _Function.mark_non_differentiable(args) _Function.save_for_backward(tensors)"
        " _Function.needs_input_grad _Function.set_materialize_grads(value)"
    ),
    "mindspore.graph.api": "_pynative_executor.requires_grad()",
    "mindspore.graph.jit_context": "jit_context()",
    "mindspore.ops": "PrimitiveWithInfer(name) PrimitiveWithInfer.__infer__(args)",
    "mindspore.utils.dlpack": "from_dlpack(dlpack) to_dlpack(tensor)",
}


def check_requirements() -> None:
    """Check that the ops can run.

    Raises:
        ImportError: MindSpore is missing or too old; it says what to install.
    """
    try:
        version = importlib.metadata.version("mindspore")
    except importlib.metadata.PackageNotFoundError:
        raise ImportError(
            f"custom_pypto_mindspore: mindspore is not installed: {_INSTALL}"
        ) from None
    if Version(version) < Version(MINIMUM):
        raise ImportError(
            f"custom_pypto_mindspore: mindspore {version} is too old to share memory: {_INSTALL}"
        )


def check_layout() -> None:
    """Check that MindSpore has what is used of it.

    Raises:
        AttributeError, ImportError: something is missing, or has other parameters.
    """
    for module, uses in USED.items():
        for use in uses.split():
            path, is_function, known = use.partition("(")
            found = operator.attrgetter(path)(importlib.import_module(module))
            if is_function:
                given = [each for each in inspect.signature(found).parameters if each != "self"]
                if ",".join(given) != known[:-1]:
                    raise ImportError(f"{module}.{path} takes ({','.join(given)}), not ({known}")
