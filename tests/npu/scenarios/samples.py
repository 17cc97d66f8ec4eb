"""Samples of the plugins' ops on NPUs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache

import torch
from custom_pypto_testing.case import Case
from custom_pypto_testing.ops_under_test import Op, op_of_plugin

# Samples that CANN's own kernels do not take.
_BEYOND_STOCK = {
    "npu_lightning_indexer_pto": (
        *("key-heads", "key-heads-all", "odd-sizes", "odd-sizes-float16", "odd-sizes-float32"),
        "bsnd-key-heads",
    ),
    "npu_quant_lightning_indexer": (
        *("key-heads", "odd-sizes", "bsnd-key-heads", "fp32-weights-int64-lengths"),
    ),
    "npu_sparse_attention_pto": (
        *("small", "small-fp16", "small-fp32", "odd", "odd-fp32", "wide", "longer-than-top-k"),
        *("index-size-64", "index-heads-72", "nz-longer-than-top-k"),
    ),
    "npu_sparse_flash_attention": (
        *("small-bsnd", "small-tnd", "small-fp16-bsnd", "small-fp16-tnd", "small-fp32-bsnd"),
        *("small-fp32-tnd", "odd-bsnd", "odd-tnd", "odd-fp32-bsnd", "odd-fp32-tnd", "wide-bsnd"),
        *("wide-tnd", "longer-than-top-k-bsnd", "longer-than-top-k-tnd", "log-sum-exp"),
        *("keys-bsnd", "keys-tnd"),
    ),
    "npu_lightning_indexer": ("bsnd-key-heads",),
    "npu_lightning_indexer_grad": (
        *("bsnd", "bsnd-lengths", "bsnd-prefix-sums", "bsnd-key-heads", "tnd", "tnd-padded"),
        "whole",
    ),
    "npu_sparse_flash_attention_grad": (
        *("odd-paged-bsnd", "odd-bsnd", "odd-paged-tnd", "odd-tnd", "fp32", "fp16"),
    ),
}
# The samples among these that the kernel of an opp package takes.
_TAKEN_BY_CUSTOM = {
    "npu_lightning_indexer_pto": ("key-heads-all", "odd-sizes-float16", "odd-sizes-float32"),
    # Samples with weights that NZ order can hold, and index-heads-72: the pieces of the fused op
    # take that with the indexer of the package.
    "npu_sparse_attention_pto": (
        *("wide", "nz-longer-than-top-k", "index-size-64", "index-heads-72"),
    ),
}


def cases_of(name: str) -> tuple[Case, ...]:
    """The cases of an op on npu that this machine's kernels take."""
    beyond = _beyond(name)
    return tuple(case for case in _every(name).cases if case.sample.name not in beyond)


def case_named(name: str, sample: str) -> Case:
    """One case of an op."""
    return next(case for case in _every(name).cases if case.sample.name == sample)


def refused_cases(name: str) -> list[Case]:
    """The cases that this machine's kernels do not take."""
    return [case_named(name, sample) for sample in _beyond(name)]


@cache
def _every(name: str) -> Op:
    """The op with every sample. The reference computes each sample once a process."""
    return op_of_plugin(name, "npu")


def _beyond(name: str) -> list[str]:
    taken = _TAKEN_BY_CUSTOM.get(name, ()) if os.environ["KERNELS"] == "custom" else ()
    return [sample for sample in _BEYOND_STOCK.get(name, ()) if sample not in taken]


def one_of_each_form(cases: tuple[Case, ...]) -> tuple[Case, ...]:
    """The first case of every form and of every width; those that have other sizes to try lead.

    The form of a case decides the nodes of its graph: the arguments that are present, those that
    are one tensor, their numbers of dimensions, whether each is contiguous and fits NZ order, and
    options. Sizes are no part of it. Casts depend on the widths of dtypes: each argument has each
    of its widths in one of the cases, not in one case of every form.
    """
    chosen: list[Case] = []
    seen: set[object] = set()
    for case in sorted(cases, key=lambda case: case.sample.resized is None):
        given = _arguments(case)
        form = tuple((name, _form(value, given)) for name, value in given.items())
        widths = {
            (name, value.dtype.itemsize, value.is_floating_point())
            for name, value in given.items()
            if isinstance(value, torch.Tensor)
        }
        if not {form, *widths} <= seen:
            chosen.append(case)
        seen |= {form, *widths}
    return tuple(chosen)


def _arguments(case: Case) -> dict[str, object]:
    names = (argument.name for argument in case.op.schema.arguments)
    return dict(zip(names, case.sample.args, strict=False)) | dict(case.sample.kwargs)


def _form(value: object, given: Mapping[str, object]) -> object:
    if isinstance(value, torch.Tensor):
        same = tuple(name for name, other in given.items() if other is value)
        is_nz = value.dim() > 0 and value.size(-1) % 16 == 0
        return value.dim(), value.is_contiguous(), is_nz, same
    return value if isinstance(value, str | bool) or value is None else type(value)


# Lengths that can be shorter while the other arguments stay valid.
_LENGTHS = ("act_seqs", "actual_seq_lengths_key")


def with_other_values(original: Case) -> Case:
    """The case with other values in tensors of the same shapes: shorter lengths, moved numbers."""

    def change(name: str, tensor: torch.Tensor) -> torch.Tensor:
        if tensor.is_floating_point():
            return tensor.flatten().roll(1).view(tensor.shape)
        layouts = {original.sample.kwargs.get(key) for key in ("layout_key", "layout")}
        if name in _LENGTHS and "TND" not in layouts:
            return (tensor - 1).clamp(min=0)
        return tensor.clone()

    return original.copy().map(change)
