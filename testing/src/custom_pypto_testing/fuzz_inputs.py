"""Random calls of an op, drawn from its contract: the input of the fuzzer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from random import Random
from typing import TYPE_CHECKING, Any

import torch
from custom_pypto.core.contracts import bind_arguments
from custom_pypto_contract.contract import OpContract
from custom_pypto_contract.dtypes import DTYPES
from custom_pypto_contract.schema import Argument

from .case import Case
from .sample_generator import Arguments, Candidate, DrawingError, constants_of, draw, draw_candidate

if TYPE_CHECKING:
    from .ops_under_test import Op

_CALLS_OF_ONE_BASE = 25
"""Drawing valid arguments takes milliseconds, changing them microseconds."""

_TRIES = 50

HUGE = (2**31, 2**32, 2**40, 2**61, 2**62)
_INTS = (0, 1, -1, 2, 7, 2**31 - 1, 2**31, -(2**31), 2**62, 2**63 - 1, -(2**63), 2**63)
_FLOATS = (0.0, -0.0, -1.0, 1e-45, 1e308, float("inf"), float("-inf"), float("nan"))
_TEXTS = ("", "no such word", "tnd", "BSND\0", "\x1b[31m", "'\"{}%s", "\u00e9" * 300)
_DTYPES = (
    *(getattr(torch, name) for name in DTYPES),
    torch.uint16,
    torch.complex64,
    # Not in the stable ABI.
    torch.float8_e8m0fnu,
)
_SPECIAL_FLOATS = (0.0, -0.0, float("inf"), float("-inf"), float("nan"), 3e38)


@dataclass(frozen=True)
class FuzzCall:
    """A call, and what is unusual about it, such as ``valid`` and ``dtype of key``."""

    call: Case
    changes: tuple[str, ...]

    def has(self, change: str) -> bool:
        """Return whether an argument has this change."""
        return any(each.split(" of ")[0] == change for each in self.changes)


def fuzz_call(op: Op, seed: int, number: int) -> FuzzCall:
    """Return call `number` of the series that `seed` begins; always the same one."""
    contract = op.contract
    assert contract is not None
    kind, base = _base(op, contract, seed, number // _CALLS_OF_ONE_BASE)
    random = Random(f"{op.name} {seed} {number}")
    given = dict(Case.of(op, base).copy().kwargs)
    most = 2 if kind == "valid" else 1
    changes = [kind]
    for _ in range(random.randint(0, most)):
        changes.extend(_change(contract, given, random))
    return FuzzCall(Case.of(op, given), tuple(changes))


@lru_cache(maxsize=2)
def _base(op: Op, contract: OpContract, seed: int, number: int) -> tuple[str, Arguments]:
    """Return arguments to change, and their kind."""
    random = Random(f"{op.name} {seed} base {number}")
    kind = random.choice(("valid", "valid", "any", "huge"))
    # Such a contract may not say all that the op asks for.
    if kind == "valid" and contract.outputs is None and random.random() < 0.5:
        case = random.choice(op.cases)
        return kind, bind_arguments(contract, case.args, case.kwargs)
    if kind == "any":
        try:
            return kind, draw_candidate(contract, random, lambda candidate: True, kept=())[1]
        except DrawingError:
            pass
    if kind == "huge":
        for _ in range(_TRIES):
            try:
                return kind, _with_huge_dims(contract, random)
            except (RuntimeError, ValueError, OverflowError, ZeroDivisionError, IndexError):
                continue
    return "valid", draw(contract, random)


def _with_huge_dims(op: OpContract, random: Random) -> Arguments:
    """Return arguments with huge dims, by expand: products of such dims wrap in 64 bits."""
    candidate, given = draw_candidate(op, random, Candidate.is_right)
    dims = candidate.dims.items()
    numbers = [name for name, dim in dims if isinstance(dim, int) and name not in candidate.lengths]
    numbers += [name for name, each in candidate.scalars.items() if type(each) is int]
    if not numbers:
        raise ValueError(f"{op.name} has no dims")
    before = {tensor.name: candidate.sizes_of_all(tensor) for tensor in op.tensors}
    for name in random.sample(numbers, min(len(numbers), random.choice((1, 1, 2)))):
        where = candidate.dims if name in candidate.dims else candidate.scalars
        where[name] = random.choice(HUGE)
    given.update(candidate.scalars)
    for tensor in op.tensors:
        value = given[tensor.name]
        if value is None:
            continue
        made = list(value) if tensor.is_list else [value]
        for index, sizes in enumerate(candidate.sizes_of_all(tensor)):
            if sizes != before[tensor.name][index]:
                one = made[index].new_zeros([1] * len(sizes))
                made[index] = one.expand([(size + 2**63) % 2**64 - 2**63 for size in sizes])
        given[tensor.name] = made if tensor.is_list else made[0]
    return given


def _change(op: OpContract, given: Arguments, random: Random) -> list[str]:
    for _ in range(_TRIES):
        argument = random.choice(op.arguments)
        value = given[argument.name]
        tensors = value if isinstance(value, list) else [value]
        if argument.is_tensor_list and (not tensors or random.random() < 0.2):
            given[argument.name] = random.choice((None, [], [*tensors, *tensors], tensors[1:]))
            return [f"length of {argument.name}"]
        if not argument.is_tensor and not argument.is_tensor_list:
            given[argument.name] = random.choice(_scalars(op, argument))
            return [f"scalar of {argument.name}"]
        if value is None:
            one = torch.ones(random.choice(((1,), (2, 3), (1, 1, 4))), device="cpu")
            given[argument.name] = one if argument.is_tensor else [one]
            return [f"presence of {argument.name}"]
        name, change = random.choice(_CHANGES)
        index = random.randrange(len(tensors)) if argument.is_tensor_list else 0
        if tensors[index] is None:
            continue
        try:
            changed = change(tensors[index], random, given)
        except (RuntimeError, TypeError, NotImplementedError, ValueError, IndexError):
            # torch cannot change this tensor so.
            continue
        changed = [*tensors[:index], changed, *tensors[index + 1 :]]
        given[argument.name] = changed[0] if argument.is_tensor else changed
        return [f"{name} of {argument.name}"]
    return []


def _scalars(op: OpContract, argument: Argument) -> Sequence[Any]:
    match argument.type.removesuffix("?"):
        case "str":
            return (*constants_of(op, argument.name), *_TEXTS, None, 3)
        case "bool":
            return (True, False, None, 2, "yes")
        case "int" | "SymInt":
            return (*_INTS, None, 0.5, "1", True)
        case "float":
            return (*_FLOATS, 1, None, "1.0", 2**63)
        case "ScalarType":
            # The stable ABI of torch has no value for the others.
            return (*(getattr(torch, each) for each in DTYPES), None, 3)
        case "Device":
            return (torch.device("cpu"), torch.device("meta"), None, "no such device")
    return ([], [0], [-1, 2**62], [2**63 - 1] * 8, None, 0)


Change = Callable[[torch.Tensor, Random, Arguments], Any]


def _dtype(value: torch.Tensor, random: Random, given: Arguments) -> torch.Tensor:
    dtype = random.choice(_DTYPES)
    if _is_huge(value):
        # It must stay one element in memory.
        return torch.ones((), dtype=dtype, device="cpu").expand(value.shape)
    return value.to(dtype)


def _strided(value: torch.Tensor, random: Random, given: Arguments) -> torch.Tensor:
    """The same values in other memory: with gaps, from an offset, or in reverse order of dims."""
    _refuse_huge(value)
    kind = random.choice(("gaps", "offset", "reversed"))
    if kind == "gaps":
        return value.new_zeros((*value.shape, 2))[..., 1].copy_(value)
    if kind == "offset":
        memory = value.new_zeros(value.numel() + 3)[random.randint(1, 3) :][: value.numel()]
        return memory.view(value.shape).copy_(value)
    order = list(reversed(range(value.dim())))
    return value.new_zeros(value.shape[::-1]).permute(order).copy_(value)


def _sliced(value: torch.Tensor, random: Random, given: Arguments) -> torch.Tensor:
    dim = random.randrange(value.dim())
    start, step = random.choice(((0, 2), (1, 1), (1, 2)))
    return value[(slice(None),) * dim + (slice(start, None, step),)]


def _expanded(value: torch.Tensor, random: Random, given: Arguments) -> torch.Tensor:
    """Equal sizes where every element of one dim is the same memory, or a huge dim."""
    dim = random.randrange(value.dim())
    sizes = list(value.shape)
    sizes[dim] = random.choice((sizes[dim], sizes[dim], sizes[dim] + 1, *HUGE))
    return value.narrow(dim, 0, 1).expand(sizes)


def _resized(value: torch.Tensor, random: Random, given: Arguments) -> torch.Tensor:
    dim = random.randrange(value.dim())
    sizes = list(value.shape)
    sizes[dim] = max(0, random.choice((0, 0, 1, sizes[dim] - 1, sizes[dim] + 1, 2 * sizes[dim])))
    _refuse_huge(value.new_empty(sizes, device="meta"))
    return value.new_ones(sizes)


def _empty(value: torch.Tensor, random: Random, given: Arguments) -> torch.Tensor:
    """No elements, with another dim that is huge."""
    sizes = [random.choice((size, 2**62)) for size in value.shape]
    sizes[random.randrange(len(sizes))] = 0
    return value.new_empty(1).as_strided(sizes, [0] * len(sizes))


def _ndim(value: torch.Tensor, random: Random, given: Arguments) -> torch.Tensor:
    change = random.choice(("less", "more", "scalar", "many"))
    if change == "less":
        return value.select(random.randrange(value.dim()), 0)
    if change == "more":
        return value.unsqueeze(random.randint(0, value.dim()))
    if change == "scalar":
        return value.new_ones(())
    return value.new_ones([1] * random.choice((6, 26, 65)))


def _conjugate(value: torch.Tensor, random: Random, given: Arguments) -> torch.Tensor:
    _refuse_huge(value)
    return value.to(torch.complex64).conj()


def _inference(value: torch.Tensor, random: Random, given: Arguments) -> torch.Tensor:
    _refuse_huge(value)
    with torch.inference_mode():
        return value.clone()


def _requires_grad(value: torch.Tensor, random: Random, given: Arguments) -> torch.Tensor:
    leaf = value.detach().requires_grad_()
    return random.choice((leaf, leaf.view(leaf.shape)))


def _shared(value: torch.Tensor, random: Random, given: Arguments) -> torch.Tensor:
    """The memory of another argument, from its start or overlapping it."""
    tensors = {name: each for name, each in given.items() if isinstance(each, torch.Tensor)}
    others = [name for name, each in tensors.items() if each is not value]
    name = random.choice([each for each in others if tensors[each].dtype == value.dtype])
    other = tensors[name]
    offset = other.storage_offset() + random.choice((0, 0, 1))
    # This may enlarge the storage. Then both become views of all of it: where one is a view of the
    # other, torch may give their fakes a storage of the other's size.
    other.as_strided(value.shape, value.stride(), offset)
    whole = other.new_empty(0).set_(other.untyped_storage())
    shared = whole.as_strided(other.shape, other.stride(), other.storage_offset())
    given[name] = shared.requires_grad_(other.requires_grad)
    return whole.as_strided(value.shape, value.stride(), offset)


def _values(value: torch.Tensor, random: Random, given: Arguments) -> torch.Tensor:
    """Some elements negative, beyond what the op allows, or special floats."""
    _refuse_huge(value)
    if value.dtype == torch.bool:
        raise ValueError("no value of a bool is unusual")
    if value.dtype.is_floating_point:
        special: Sequence[Any] = _SPECIAL_FLOATS
    else:
        limits = torch.iinfo(value.dtype)
        near = int(value.max()) + 1
        special = (-1, 0, 1, near, 2 * near, 1000, limits.min, limits.max)
        special = [each for each in special if limits.min <= each <= limits.max]
    flat = value.reshape(-1)
    for _ in range(random.choice((1, 1, 2, 8))):
        flat[random.randrange(len(flat))] = random.choice(special)
    if random.random() < 0.1:
        flat.fill_(random.choice(special))
    return flat.view(value.shape)


_CHANGES: Sequence[tuple[str, Change]] = (
    ("presence", lambda value, random, given: None),
    *(("dtype", _dtype),) * 2,
    (
        "transposed",
        lambda value, random, given: value.transpose(
            random.randrange(value.dim()), random.randrange(value.dim())
        ),
    ),
    *(("strided", _strided),) * 2,
    ("sliced", _sliced),
    ("expanded", _expanded),
    *(("resized", _resized),) * 2,
    ("empty", _empty),
    ("ndim", _ndim),
    ("conjugate", _conjugate),
    ("negative", lambda value, random, given: torch._neg_view(value)),
    ("inference", _inference),
    ("gradient", _requires_grad),
    (
        "device",
        lambda value, random, given: torch.empty_strided(
            value.shape, value.stride(), dtype=value.dtype, device="meta"
        ),
    ),
    ("shared", _shared),
    *(("values", _values),) * 4,
)


def _is_huge(value: torch.Tensor) -> bool:
    return value.numel() > 2**20


def _refuse_huge(value: torch.Tensor) -> None:
    if _is_huge(value):
        raise ValueError("a copy does not fit into memory")
