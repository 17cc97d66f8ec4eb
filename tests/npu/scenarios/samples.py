"""Samples of the plugins' ops on NPUs, and the suite's checks of them."""

import os
from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import cache, partial

from custom_pypto.core import contract
from custom_pypto_testing import checks
from custom_pypto_testing.case import Case, one_of_each_graph
from custom_pypto_testing.ops_under_test import Op, op_of_plugin
from custom_pypto_testing.verification import op_checks
from torch import _dynamo as dynamo

# Samples that CANN's own kernels do not take.
_BEYOND_STOCK = {
    "npu_lightning_indexer_pto": "key-heads odd-sizes odd-sizes-float16"
    " odd-sizes-float32 bsnd-key-heads",
    "npu_quant_lightning_indexer": "key-heads odd-sizes fp32-weights-int64-lengths",
    "npu_sparse_attention_pto": "small small-fp16 small-fp32 odd odd-fp32 wide longer-than-top-k"
    " index-size-64 index-heads-72 nz-longer-than-top-k",
    "npu_sparse_flash_attention": "small-bsnd small-tnd small-fp16-bsnd small-fp16-tnd"
    " small-fp32-bsnd small-fp32-tnd odd-bsnd odd-tnd odd-fp32-bsnd odd-fp32-tnd wide-bsnd wide-tnd"
    " longer-than-top-k-bsnd longer-than-top-k-tnd log-sum-exp keys-bsnd keys-tnd",
    "npu_lightning_indexer": "bsnd-key-heads",
    "npu_lightning_indexer_v2": "key-heads odd-sizes",
    "npu_quant_lightning_indexer_v2": "key-heads odd-sizes",
    "npu_lightning_indexer_grad": "bsnd bsnd-lengths bsnd-prefix-sums bsnd-key-heads tnd tnd-padded"
    " whole",
    "npu_sparse_flash_attention_grad": "odd-paged-bsnd odd-bsnd odd-paged-tnd odd-tnd fp32 fp16",
}
# Samples that converters do not take.
_BEYOND_GRAPHS = {"npu_grouped_matmul": "bfloat16_separate bfloat16_int4 float16_int4"}
# The samples among these that the kernel of an opp package takes.
_TAKEN_BY_CUSTOM = {
    "npu_lightning_indexer_pto": "odd-sizes-float16 odd-sizes-float32",
    # Samples with weights that NZ order can hold, and index-heads-72: the pieces of the fused op
    # take that with the indexer of the package.
    "npu_sparse_attention_pto": "wide nz-longer-than-top-k index-size-64 index-heads-72",
}
_OF_EACH_GRAPH = ("operator", "symbolic_graph", "npugraph_ex")
"""Checks that do not distinguish sizes: they get one sample for each graph."""
_SPECIALIZED = {"symbolic_graph": {"specialize_float": True}}
"""Settings of dynamo. Without this one it traces a call with symbolic floats, finds that their
values must be known, and traces again; tests of weights have it so."""


def passes(check: str, name: str) -> int:
    """Run a check of the suite on the samples of an op. Returns how many it has checked."""
    cases, count = cases_of(name), 0
    if check in ("graph", "symbolic_graph"):
        refused = _BEYOND_GRAPHS.get(name, "").split()
        cases = tuple(case for case in cases if case.sample.name not in refused)
    if check in _OF_EACH_GRAPH:
        cases = tuple(one_of_each_graph(cases))
    elif check == "graph" or os.environ["TASK_QUEUE_ENABLE"] != "1":
        cases = tuple(_of_each_kind(cases))
    # Those that have other sizes come first.
    resized = sum(case.sample.resized is not None for case in cases)
    if check == "symbolic_graph":
        cases = cases[: max(2 if _has_known_converter(name) else 4, resized)]
    elif check == "operator":
        # It looks at what is registered. On the CPU it gets every sample.
        cases = cases[:1]
    elif check == "npugraph_ex":
        # It replays what `capture`, which gets every sample, replays.
        cases = cases[:1]
    for case in cases:
        try:
            with dynamo.config.patch(_SPECIALIZED.get(check, {})):
                _check_named(check, name)(case)
        except checks.NotCheckedError:
            continue
        except Exception as error:
            raise AssertionError(f"{case.id}: {error}") from error
        count += 1
    return count


def _of_each_kind(cases: Iterable[Case]) -> Iterator[Case]:
    """Yield the cases whose graph or dtypes no earlier case has."""
    seen: set[Hashable] = set()
    for case in cases:
        kinds = {case.graph_key, tuple(each.dtype for each in case.tensors.values())}
        if not kinds <= seen:
            seen |= kinds
            yield case


def _has_known_converter(name: str) -> bool:
    """Whether few symbolic graphs show what all do.

    Core makes the converter of a graph line, and an opp package's own operator takes a whole call.
    """
    return bool(contract(name).npu.graph) or os.environ["KERNELS"] == "custom"


def passes_with(check: str, name: str, sample: str) -> None:
    """Run a check of the suite on one sample of an op."""
    _check_named(check, name)(case_named(name, sample))


def _check_named(check: str, name: str) -> Callable[[Case], None]:
    if check != "operator":
        return op_checks.find_check(check)
    # CANN's gradients of these are of other calls than the samples: gradients_of_...
    without = (
        "npu_sparse_flash_attention",
        "npu_lightning_indexer",
        "npu_mhc_pre",
        "npu_sparse_flash_mla",
    )
    return partial(checks.check_operator, with_gradients=name not in without)


def cases_of(name: str) -> tuple[Case, ...]:
    """The cases of an op on npu that this machine's kernels take."""
    refused = beyond(name)
    return tuple(case for case in _every(name).cases if case.sample.name not in refused)


def case_named(name: str, sample: str) -> Case:
    """One case of an op."""
    return next(case for case in _every(name).cases if case.sample.name == sample)


@cache
def _every(name: str) -> Op:
    """The op with every sample. The reference computes each sample once a process."""
    return op_of_plugin(name, "npu")


def beyond(name: str) -> list[str]:
    """The samples of an op that this machine's kernels do not take."""
    taken = _TAKEN_BY_CUSTOM.get(name, "") if os.environ["KERNELS"] == "custom" else ""
    return [each for each in _BEYOND_STOCK.get(name, "").split() if each not in taken.split()]
