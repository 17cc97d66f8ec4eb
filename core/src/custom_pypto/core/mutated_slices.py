"""Slices that an op writes in, in graphs of torch's compilers.

A compiled graph makes the slice again from the whole tensor and an offset. The slice is in the
wrong place if the whole tensor begins elsewhere than during compilation, or if Inductor has a
symbol as the offset. If two whole tensors are one memory, Inductor loses one of two writes.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import torch

from custom_pypto.core.after_import import AfterImport
from custom_pypto.core.errors import logger
from custom_pypto.core.records import NAMESPACE
from custom_pypto.core.symbols import decide_statically

_LOWERING = "torch._inductor.lowering"
_PASSES = "torch._inductor.fx_passes.post_grad"  # It imports the lowerings.
_lacks_lowering = False


def call_on_copies(map_mutated: Callable[..., tuple[Any, Any]]) -> Callable[..., Any]:
    """Return a rule for torch's functional mode: an op writes a copy where a slice is misplaced.

    The copy then goes into the slice by `copy_`, whose place torch keeps. `map_mutated` returns the
    arguments of a call with a function applied to each tensor that it writes.
    """

    def call(mode: Any, op: Any, types: Any, args: Any, kwargs: Any = None) -> Any:
        copies: list[tuple[torch.Tensor, torch.Tensor]] = []
        written: list[torch.Tensor] = []
        is_exported = mode.export or torch.compiler.is_exporting()

        def copy(tensor: torch.Tensor) -> torch.Tensor:
            # Each result of detach() is a whole tensor, and Inductor copies each of them back.
            memory = tensor.untyped_storage()._cdata
            beside = [each for each in written if each.untyped_storage()._cdata == memory]
            wholes = {id(each if each._base is None else each._base) for each in beside}
            if len(wholes) == 1 and not _is_misplaced(tensor, is_exported=is_exported):
                return tensor
            copies.append((tensor, tensor.clone()))
            return copies[-1][1]

        with mode:
            map_mutated(written.append, args, kwargs or {})
            args, kwargs = map_mutated(copy, args, kwargs or {})
            results = op(*args, **kwargs) if copies else None
            for tensor, changed in copies:
                tensor.copy_(changed)
        if not copies:
            results = mode.__torch_dispatch__(op, types, args, kwargs)
        # As kernels do: autograd may have saved the tensors.
        torch.autograd.graph.increment_version(written)
        return results

    return call


def _is_misplaced(tensor: torch.Tensor, *, is_exported: bool) -> bool:
    whole = tensor._base
    if whole is None and torch.is_inference_mode_enabled():
        whole = getattr(tensor, "_inference_mode_base", None)
    if whole is None:
        return False
    # Other compilers, and exported programs, keep a number that counts from the beginning of memory
    # for tensors that begin elsewhere later. Inductor counts from where the whole begins.
    if is_exported or not _inductor_compiles():
        return True
    if _lacks_lowering and isinstance(tensor.storage_offset(), torch.SymInt):
        return True
    return not decide_statically(whole.storage_offset() == 0)


def _inductor_compiles() -> bool:
    virtualized = sys.modules.get("torch._inductor.virtualized")
    mode = getattr(getattr(virtualized, "V", None), "fake_mode", None)
    return isinstance(mode, torch._subclasses.FakeTensorMode)


def mend_inductor() -> None:
    """Mend what Inductor does to written slices, once its passes are imported."""
    if _PASSES in sys.modules:
        _mend()
    else:
        _inductor.watch()


def _mend() -> None:
    global _lacks_lowering
    try:
        _keep_clones(sys.modules[_PASSES])
        lowering = sys.modules[_LOWERING]
        target = torch.ops.aten.sym_storage_offset.default
        if target not in lowering.lowerings:

            @lowering.register_lowering(target)  # type: ignore[untyped-decorator]
            def offset(tensor: object) -> Any:
                value = lowering.V.graph.current_node.meta["val"]
                return value.node.expr if isinstance(value, torch.SymInt) else int(value)

    except Exception as error:
        _lacks_lowering = True
        logger.debug("Inductor is not as expected, so that slices are copied", exc_info=error)


def _keep_clones(passes: Any) -> None:
    """Have Inductor keep a clone that an op of ours writes if its source has another offset.

    Else Inductor drops it, and the op gets the source's memory at the clone's offset.
    """
    is_same = passes.same_meta

    @functools.wraps(is_same)
    def same_meta(clone: Any, source: Any) -> bool:
        users = [user for user in clone.users if clone in user.kwargs.get("_all_bases", ())]
        return is_same(clone, source) and (
            all(user.args[0].namespace != NAMESPACE for user in users)
            or bool(decide_statically(_offset(clone) == _offset(source)))
        )

    if not hasattr(is_same, "__wrapped__"):
        passes.same_meta = same_meta


def _offset(node: Any) -> Any:
    return node.meta["val"].storage_offset()


_inductor = AfterImport([_PASSES], _mend)
