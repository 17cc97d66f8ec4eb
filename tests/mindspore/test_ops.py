"""Every op that is installed, called with MindSpore's tensors, and the documentation's code."""

import copy
import pydoc
from collections.abc import Callable
from typing import Any

import custom_pypto.core
import custom_pypto_mindspore as cp
import mindspore
import numpy as np
import pytest
import torch
from custom_pypto_mindspore.memory import DTYPES, dtype_name, to_mindspore, to_torch
from custom_pypto_mindspore.op import leaves, map_leaves
from custom_pypto_testing.drawn_samples import drawn_samples
from programs import run_python
from repository import ROOT

OPS = [record.name for record in custom_pypto.core.ops()]


def copy_tensor(tensor: torch.Tensor) -> torch.Tensor:
    """Copy a tensor with its strides."""
    storage = tensor.untyped_storage().clone()  # type: ignore[no-untyped-call]
    fresh = torch.empty(0, dtype=tensor.dtype)
    return fresh.set_(storage, tensor.storage_offset(), tensor.size(), tensor.stride())


def map_tensors(function: Callable[[Any], Any], kind: type, value: Any) -> Any:
    return map_leaves(lambda leaf: function(leaf) if isinstance(leaf, kind) else leaf, value)


def as_mindspore(tensor: torch.Tensor) -> mindspore.Tensor:
    """Make a tensor of the values; of the shape and dtype, if the memory cannot be shared."""
    name = str(tensor.dtype).removeprefix("torch.")
    if name in DTYPES:
        return to_mindspore(copy_tensor(tensor), str)
    return mindspore.Tensor(shape=tuple(tensor.shape), dtype=getattr(mindspore, name))


def assert_same(got: Any, wanted: Any) -> None:
    got = map_tensors(lambda tensor: to_torch(tensor, str), mindspore.Tensor, got)
    for ours, torchs in zip(leaves(got, object), leaves(wanted, object), strict=True):
        if isinstance(torchs, torch.Tensor):
            assert ours.dtype == torchs.dtype
            assert torch.equal(ours.nan_to_num(), torchs.nan_to_num())
        else:
            assert ours == torchs


def test_the_ops_are_those_of_the_plugins() -> None:
    assert dir(cp.ops) == sorted(OPS)
    # gated_silu is a third party's.
    assert {"add_custom", "gated_silu", "npu_sparse_flash_attention"} <= set(OPS)


@pytest.mark.parametrize("op", OPS)
def test_results_and_writes_are_torchs(op: str) -> None:
    samples = custom_pypto.core.samples(op) or tuple(drawn_samples(custom_pypto.core.contract(op)))
    assert samples
    for sample in samples:
        given = map_tensors(copy_tensor, torch.Tensor, (sample.args, dict(sample.kwargs)))
        args, kwargs = map_tensors(as_mindspore, torch.Tensor, given)
        dtypes = [dtype_name(each.dtype) for each in leaves((args, kwargs), mindspore.Tensor)]
        if not_shared := [each for each in dtypes if each not in DTYPES]:
            message = f"^{op}: argument '\\w+' is of dtype {not_shared[0]}, whose memory MindSpore"
            with pytest.raises(TypeError, match=message):
                getattr(cp.ops, op)(*args, **kwargs)
            continue
        result = getattr(cp.ops, op)(*args, **kwargs)
        assert_same(result, getattr(torch.ops.custom_pypto, op)(*given[0], **given[1]))
        assert_same((args, kwargs), given)


@pytest.mark.parametrize("by_name", [False, True])
def test_adv_step_flash_takes_the_arguments_of_vllm_mindspore(by_name: bool) -> None:
    draw = np.random.default_rng(0).integers
    # Sampled tokens are of 2 queries of 3 sequences, whose block tables have 4 blocks of 32 slots.
    sizes = {"num_seqs": 3, "num_queries": 2, "block_size": 32}
    shapes = {"input_tokens": 3, "sampled_token_ids": 2, "input_positions": 3, "seq_lens": 3}
    shapes |= {"slot_mapping": 3, "block_tables": (3, 4)}
    values = {name: draw(100, size=shape) for name, shape in shapes.items()}
    call = sizes | {name: mindspore.Tensor(value) for name, value in values.items()}
    advance = cp.npu_ops.adv_step_flash
    assert (advance(**call) if by_name else advance(*call.values())) is None
    # It writes to these arrays.
    tensors = {name: torch.from_numpy(value) for name, value in values.items()}
    torch.ops.custom_pypto.npu_advance_step_flashattn(**sizes, **tensors)
    for name, value in values.items():
        assert call[name].asnumpy().tolist() == value.tolist(), name


def test_lists_none_keywords_and_dtypes_are_as_in_the_schema(vector: mindspore.Tensor) -> None:
    results, count = cp.ops.nested([vector, vector + 1], None, scale=2, dtype=mindspore.bfloat16)
    assert count == 2
    assert [each.dtype for each in results] == [mindspore.bfloat16] * 2
    assert results[1].astype(mindspore.float32).asnumpy().tolist() == [4, 6, 8, 10]
    ((by_name,), _) = cp.ops.nested(xs=(vector,), y=vector)
    assert by_name.asnumpy().tolist() == [2, 4, 6, 8]


def test_several_results_are_a_tuple(vector: mindspore.Tensor) -> None:
    results = cp.ops.add_custom_backward(vector)
    assert isinstance(results, tuple)
    assert [type(each) for each in results] == [mindspore.Tensor] * 2


@pytest.mark.parametrize(
    "arguments",
    [lambda x: (x, x[:3]), lambda x: (x,), lambda x: (x, 3), lambda x: (x, x, x)],
    ids=["shape", "missing", "type", "too many"],
)
def test_errors_of_the_op_are_torchs_own(
    vector: mindspore.Tensor, arguments: Callable[[Any], tuple[Any, ...]]
) -> None:
    with pytest.raises(RuntimeError) as theirs:
        torch.ops.custom_pypto.add_custom(*arguments(torch.zeros(4)))
    with pytest.raises(RuntimeError) as ours:
        cp.ops.add_custom(*arguments(vector))
    assert str(ours.value) == str(theirs.value)


@pytest.mark.parametrize(
    ("foreign", "kind"),
    [
        (torch.ones(4, requires_grad=True), "torch.Tensor"),
        (torch.nn.Parameter(torch.ones(4)), "torch.Tensor"),
        (np.ones(4, np.float32), "numpy.ndarray"),
    ],
    ids=["torch", "parameter", "numpy"],
)
@pytest.mark.parametrize("in_grad", [False, True], ids=["plain", "in_grad"])
def test_foreign_tensors_are_refused_by_name(
    vector: mindspore.Tensor, foreign: Any, kind: str, in_grad: bool
) -> None:
    def refusal(op: str, *args: Any, **kwargs: Any) -> str:
        def call(_: Any) -> Any:
            return getattr(cp.ops, op)(*args, **kwargs)

        with pytest.raises(TypeError) as caught:
            (mindspore.grad(call) if in_grad else call)(vector)
        return str(caught.value)

    way_out = f" a {kind}, but tensors must be MindSpore's here; make a mindspore.Tensor of it"
    assert refusal("add_custom", vector, foreign) == (f"add_custom: argument 'other' has{way_out}")
    assert refusal("add_custom", foreign, foreign) == f"add_custom: argument 'self' has{way_out}"
    assert refusal("nested", [vector, foreign]) == f"nested: argument 'xs' has{way_out}"
    assert refusal("nested", [vector], y=foreign) == f"nested: argument 'y' has{way_out}"
    assert refusal("add_custom", vector, vector, foreign) == f"add_custom: got{way_out}"


def test_an_unknown_op_is_explained() -> None:
    with pytest.raises(AttributeError, match=r"no installed plugin provides it.*add_custom"):
        cp.ops.add_custon  # noqa: B018


def test_help_shows_the_contract() -> None:
    shown = pydoc.plain(pydoc.render_doc(cp.ops.add_custom))
    assert "add_custom(Tensor self, Tensor other) -> Tensor" in shown
    assert "other  [*shape], dtype of self" in shown


def test_a_copy_of_a_cell_has_the_same_op() -> None:
    assert copy.deepcopy({"op": cp.ops.add_custom})["op"] is cp.ops.add_custom
    assert repr(cp.ops.add_custom) == "<custom_pypto_mindspore.ops.add_custom>"


@pytest.mark.parametrize("page", ["docs/mindspore.md", "integrations/mindspore/README.md"])
def test_the_python_of_a_page_runs(page: str) -> None:
    # In a process that has done nothing else, as a user runs it.
    code = f"import readme, pathlib; readme.run_page(pathlib.Path({str(ROOT / page)!r}))['cp']"
    run_python("-c", code, cwd=ROOT / "tests")
