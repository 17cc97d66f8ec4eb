"""Ops that write to their arguments: version counters, and what may not be written to."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import custom_pypto.core
import pytest
import torch
from cpp_constant import cpp_constant
from cpp_library import Library, registered
from custom_pypto.core.contracts.lazy import LazyContract
from custom_pypto.core.op_arguments import OpArguments
from custom_pypto.core.python_kernels import PythonKernels
from custom_pypto_contract import manifest
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._pytree import tree_map_only

ops = torch.ops.custom_pypto

WITHOUT_ALLOCATION = cpp_constant(Path(custom_pypto.core.__file__).parent / "include", "kFew")


@pytest.fixture(scope="module", autouse=True)
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    yield from registered(tmp_path_factory, "mutation")


def test_written_arguments_get_a_new_version() -> None:
    x, read, maybe, one, two = (torch.ones(2) for _ in range(5))
    out = ops.headers_write(x, read, maybe=maybe, list=[one, two])
    assert [t._version for t in (x, read, maybe, one, two)] == [1, 0, 1, 1, 1]
    assert [t.tolist() for t in (x, read, maybe, out)] == [[-1, -1], [1, 1], [-1, -1], [-1, -1]]


def test_a_composite_kernel_bumps_nothing_itself() -> None:
    base = torch.ones(2)
    ops.headers_write_composite(base)
    assert (base._version, base.tolist()) == (0, [-1.0, -1.0])


def test_written_arguments_alone_are_mapped() -> None:
    x = torch.ones(1)
    given = [x, x], {"maybe": x, "list": [x]}
    mapped = OpArguments("headers_write").map_mutated(torch.neg, *given)
    assert mapped == ([-x, x], {"maybe": -x, "list": [-x]})


ADVICE = " Call the op under torch.no_grad() or pass a detached tensor."


@pytest.mark.parametrize("derived", [False, True])
def test_tensor_that_requires_grad_may_be_written_without_grad_mode(derived: bool) -> None:
    x = torch.ones(2, requires_grad=True)
    x = x * 1 if derived else x
    with torch.no_grad():
        ops.headers_write(x, torch.ones(2))
    assert (x.tolist(), x._version, x.requires_grad) == ([-1.0, -1.0], 1, True)


def test_inference_mode_writes_tensors_of_both_kinds() -> None:
    normal = torch.ones(2)
    with torch.inference_mode():
        inference = torch.ones(2)
        ops.headers_write(normal, inference)
        ops.headers_write(inference, normal)
    assert (normal.tolist(), inference.tolist(), normal._version) == ([-1.0] * 2, [-1.0] * 2, 1)


def test_each_of_many_tensors_of_a_written_list_is_compared_with_the_last() -> None:
    for index in range(WITHOUT_ALLOCATION + 2):
        tensors = [torch.ones(2) for _ in range(WITHOUT_ALLOCATION + 2)]
        with pytest.raises(RuntimeError, match=r"'list\[\d+\]' is written in place, but overl"):
            ops.headers_write(torch.ones(2), torch.ones(2), list=[*tensors, tensors[index]])
        ops.headers_write(torch.ones(2), torch.ones(2), list=tensors)


def pair(tensors: Iterable[torch.Tensor]) -> dict[str, torch.Tensor]:
    return dict(zip(("x", "maybe"), tensors, strict=True))


# What the call of an allowed write passes, of 240 ones.
ALLOWED: dict[str, Callable[[torch.Tensor], dict[str, Any]]] = {
    "stride of 0 of one row": lambda m: {"x": m.as_strided((1, 2), (0, 2))},
    "stride of 0 without elements": lambda m: {"x": m.as_strided((3, 0), (0, 1))},
    "read one requires grad": lambda m: {"read": torch.ones(1, requires_grad=True)},
    "read one shares elements": lambda m: {"x": m[3:], "read": m[:1].expand(237)},
    "no elements, twice": lambda m: {"list": [m[:0], m[:0]]},
    # Caches that engines have in one buffer.
    "K and V of a token": lambda m: pair(m.view(3, 4, 2, 10).split(5, -1)),
    "latent and rope of a token": lambda m: pair(m.view(3, 10, 1, 8).split([6, 2], -1)),
    "a layer of blocks of all layers": lambda m: pair(m.view(3, 5, 2, 4, 2)[:, 2].unbind(1)),
    "rows and their scales": lambda m: pair(
        (m.as_strided((3, 4, 5), (24, 5, 1)), m.as_strided((3, 4), (24, 1), 20))
    ),
}


@pytest.mark.parametrize("give", ALLOWED.values(), ids=ALLOWED)
def test_allowed_writes(give: Callable[[torch.Tensor], dict[str, Any]]) -> None:
    given = {"x": torch.ones(1), "read": torch.ones(1), **give(torch.ones(240))}
    ops.headers_write(**given)
    x, maybe = given["x"], given.get("maybe", torch.tensor(-1.0))
    assert (x.eq(-1).all(), maybe.eq(-1).all(), x._version > 0) == (True, True, True)
    ops.headers_write(x, maybe[(slice(0, 1),) * maybe.dim()].flatten())
    assert (x.eq(1).all(), maybe.eq(-1).all()) == (True, True)


def test_written_argument_may_be_an_argument_that_is_read() -> None:
    """The same elements one by one; what the op then does is the op's to say."""
    x = torch.ones(4, 1)
    out = ops.headers_write(x, x)
    ops.headers_write(x[:, 0], x.view(1, 4))
    guard(x, x)
    guard(x[:, 0], x.view(1, 4))
    assert (out.tolist(), x.tolist()) == ([[1.0]] * 4, [[1.0]] * 4)


# What the call of a refused write passes, and what its error says after the argument's name.
REFUSED: dict[str, tuple[Callable[[torch.Tensor], dict[str, Any]], str]] = {
    "overlap in part": (
        lambda x: {"x": x[:3], "maybe": x[2:]},
        (
            "'maybe' is written in place, but overlaps argument 'x', which is written too; pass a"
            " tensor of its own, such as a clone() made outside of compiled code: Inductor drops"
        ),
    ),
    "overlap of a list": (
        lambda x: {"maybe": torch.ones(1), "list": [x[:4], x[3:]]},
        "'list[1]' is written in place, but overlaps argument 'list[0]', which is written too",
    ),
    "part that is read": (
        lambda x: {"x": x[:3], "read": x[2:5]},
        (
            "but overlaps argument 'read', which is read; pass a tensor of its own, such as a"
            " clone() made outside of compiled code: Inductor drops clones"
        ),
    ),
    "transposed and read": (
        lambda x: {"x": (square := x[:4].view(2, 2)), "read": square.T},
        "but overlaps argument 'read', which is read",
    ),
    "other strides": (
        lambda x: {"x": x[::2], "maybe": x[1::3]},
        "but may overlap argument 'x', which is written too",
    ),
    "windows": (
        lambda x: {"x": x.as_strided((3, 3), (1, 1)), "read": x[9:]},
        "but with its sizes [3, 3] and strides [1, 1] several elements may be at the same memory",
    ),
    "expanded": (
        lambda x: {"list": [torch.ones(2), x[:1].expand(3)]},
        (
            "'list[1]' is written in place, but all 3 of its dimension 0 are at the same memory"
            " (stride 0), as expand() makes them; pass a tensor with memory for each element, such"
            " as its contiguous()"
        ),
    ),
    "bit": (lambda x: {"maybe": torch._neg_view(x)}, "but is a view with the negative bit"),
    "empty storage": (lambda x: {"maybe": without_storage(4)}, "16 bytes, but its storage has 0"),
    "empty storage that is read": (lambda x: {"read": without_storage(12)}, "48 bytes, but its st"),
    "sparse": (lambda x: {"maybe": x.to_sparse()}, "must be a dense tensor; pass its to_dense()"),
}


def without_storage(size: int, nbytes: int = 0) -> torch.Tensor:
    tensor = torch.ones(size)
    tensor.untyped_storage().resize_(nbytes)
    return tensor


def contract_of(op: Any) -> LazyContract:
    return LazyContract(manifest.make_op({"schema": str(op.default._schema).partition("::")[2]}))


@pytest.fixture(scope="module")
def with_core(library: Library) -> Iterator[None]:
    """The kernels that core adds to a library's own, and the fake."""
    kernels = PythonKernels()
    kernels.add_refusal("headers_write", ["CPU"], contract_of(ops.headers_write))
    kernels.add_for_writes(["headers_write"])
    kernels.add_fakes({"headers_write": fake_write})
    yield
    kernels.remove()


def refusal(given: dict[str, Any]) -> str:
    with pytest.raises(RuntimeError) as caught:
        ops.headers_write(**given)
    return str(caught.value).partition("\n")[0]


@pytest.mark.usefixtures("with_core")
@pytest.mark.parametrize(("give", "words"), REFUSED.values(), ids=REFUSED)
def test_refused_writes(give: Callable[[torch.Tensor], dict[str, Any]], words: str) -> None:
    memory, first = torch.ones(12), torch.ones(12)
    given = {"x": first, "read": torch.ones(1), **give(memory)}
    of_kernel = refusal(given)
    assert of_kernel.startswith("headers_write: argument '")
    assert words in of_kernel
    assert [t.eq(1).all() for t in (memory, first)] == [True, True]
    assert (memory._version, first._version) == (0, 0)
    mode = FakeTensorMode()
    with mode:
        assert refusal(tree_map_only(torch.Tensor, mode.from_tensor, given)) == of_kernel


def test_storage_that_ends_before_the_tensor_is_refused() -> None:
    """A fake has a storage of its own, so the kernel alone finds this."""
    for name in ("x", "read"):
        given = {"x": torch.ones(4), "read": torch.ones(4), name: without_storage(4, 8)}
        assert "needs a storage of 16 bytes, but its storage has 8, as" in refusal(given)


AUTOGRAD = {
    "leaf": "which torch refuses: a leaf Variable that requires grad is being used in an in-place"
    f" operation.{ADVICE}",
    "result": f"but it requires grad and an op that writes to an argument has no gradient.{ADVICE}",
    "inference": "which torch refuses: Inplace update to inference tensor outside InferenceMode is"
    " not allowed",
}


@pytest.mark.parametrize("argument", ["maybe", "list"])
@pytest.mark.parametrize("kind", AUTOGRAD)
@pytest.mark.parametrize("is_python", [False, True])
def test_what_autograd_forbids_is_refused(argument: str, kind: str, is_python: bool) -> None:
    x = torch.ones(2)
    with torch.inference_mode(kind == "inference"):
        refused = torch.ones(2)
    if kind != "inference":
        refused = refused.requires_grad_()
    refused = refused * 1 if kind == "result" else refused
    given = {argument: [torch.ones(2), refused] if argument == "list" else refused}
    with pytest.raises(RuntimeError) as caught:
        (guard if is_python else ops.headers_write)(x, torch.ones(2), **given)
    name = "list[1]" if argument == "list" else argument
    begin = f"headers_write: argument '{name}' is written in place, {AUTOGRAD[kind]}"
    assert str(caught.value).startswith(begin)
    assert kind != "inference" or ADVICE not in str(caught.value)
    assert (x._version, x.tolist(), refused.tolist()) == (0, [1.0] * 2, [1.0] * 2)


@pytest.mark.usefixtures("with_core")
@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64], ids=str)
def test_bits_of_an_argument_that_is_read_are_resolved(dtype: torch.dtype) -> None:
    read = torch.full((2,), 1.5, dtype=dtype)
    view = torch._neg_view(read) if dtype is torch.float32 else (read + 2j).conj()
    x = torch.ones(2)
    assert ops.headers_write(x, view).equal(-view.clone())
    assert (x.tolist(), x._version) == ([-1.0, -1.0], 1)


@pytest.mark.usefixtures("with_core")
def test_call_without_tensors_or_a_kernel_is_refused() -> None:
    with pytest.raises(RuntimeError, match=r"^headers_write: argument 'x' must be a tensor, got N"):
        ops.headers_write(None, None)
    text = "headers_write: no kernel for meta; there are kernels for CPU, PrivateUse1"
    with pytest.raises(NotImplementedError, match=f"^{text}$"):
        OpArguments("headers_write").refusal(["CPU", "PrivateUse1"], fake_write)(
            torch.ones(1, device="meta"), torch.ones(1)
        )


@pytest.mark.usefixtures("with_core")
@pytest.mark.filterwarnings("ignore:.*quantized tensor creation functions")
@pytest.mark.parametrize("argument", ["x", "read", "maybe"])
def test_argument_without_plain_elements_is_refused(argument: str) -> None:
    quantised = torch._empty_affine_quantized([2], scale=1.0, zero_point=0, dtype=torch.qint8)
    for tensor, text in (
        (quantised, "must not be quantised; pass its dequantize()"),
        (torch.ones(2).to_mkldnn(), "must be a dense tensor; pass its to_dense()"),
    ):
        given = {"x": torch.ones(2), "read": torch.ones(2), argument: tensor}
        assert refusal(given) == f"headers_write: argument '{argument}' {text}"
        assert argument == "x" or given["x"].tolist() == [1, 1]


def written_to(run: Callable[..., Any], views: list[torch.Tensor]) -> str:
    try:
        run(views[0], torch.zeros(1), maybe=views[1])
    except RuntimeError as error:
        return str(error)
    return ""


def test_library_decides_as_python_does() -> None:
    random = Random(4)
    refused = 0
    for _ in range(400):
        memory = torch.zeros(200)
        views = []
        for _ in range(2):
            dims = range(random.randint(0, 3))
            sizes = [random.randint(0, 4) for _ in dims]
            strides = [random.choice([0, 1, 2, 3, 4, 8, 12]) for _ in dims]
            views.append(memory.as_strided(sizes, strides, random.randint(0, 40)))
        texts = [written_to(run, views) for run in (ops.headers_write, guard)]
        assert texts[0] == texts[1]
        refused += bool(texts[0])
    assert 100 < refused < 390


def guard(*args: Any, is_fake: bool = False, **kwargs: Any) -> Any:
    """What a Python kernel has around it."""
    return OpArguments("headers_write").with_checks(fake_write, is_fake=is_fake)(*args, **kwargs)


def fake_write(
    x: torch.Tensor,
    read: torch.Tensor,
    *,
    maybe: torch.Tensor | None = None,
    list: list[torch.Tensor] | None = None,  # noqa: A002
) -> torch.Tensor:
    return torch.empty_like(x)
