"""The default comparison of a result with the reference's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from .outputs import outputs


@dataclass(frozen=True)
class Tolerance:
    """``|actual - expected| <= absolute + relative * |expected|``, and see `cosine`."""

    relative: float
    absolute: float
    cosine: float
    """Largest ``|actual - expected|^2 / (|actual|^2 + |expected|^2)`` over the whole tensor: finds
    what the other two let through where all values are small. A relative L2 error of e is about
    e^2 / 2."""
    outliers: float = 0.0
    """The part of the elements that need not be within `relative` and `absolute`; if it is not 0,
    one element always may be."""

    def most_outliers(self, elements: int) -> int:
        """How many of so many elements may be outliers."""
        return max(1, int(elements * self.outliers)) if self.outliers else 0


TOLERANCES = {
    torch.float64: Tolerance(relative=1e-7, absolute=1e-7, cosine=1e-14),
    torch.float32: Tolerance(relative=1.3e-6, absolute=1e-5, cosine=1e-9),
    torch.float16: Tolerance(relative=1e-3, absolute=1e-5, cosine=1e-5),
    torch.bfloat16: Tolerance(relative=1.6e-2, absolute=1e-5, cosine=5e-5),
}
"""`torch.testing.assert_close` has the same absolute and relative ones."""


def assert_close(
    actual: object, expected: object, tolerances: Mapping[torch.dtype, Tolerance] = TOLERANCES
) -> None:
    """Compare what two implementations of an op returned: tensors, numbers, lists, tuples, None.

    Tensors must be equal in shape and dtype. Floating-point tensors must have infinities and NaN at
    the same positions and be within their dtype's tolerance elsewhere; all others must be equal.

    Raises:
        AssertionError: they differ; the message says where most, and by how much.
    """
    actual_outputs, expected_outputs = outputs(actual), outputs(expected)
    if list(actual_outputs) != list(expected_outputs):
        wanted, found = (
            ", ".join(each) or "nothing" for each in (expected_outputs, actual_outputs)
        )
        raise AssertionError(f"expected {wanted} but the op returned {found}")
    for name, value in actual_outputs.items():
        _assert_value_close(name, value, expected_outputs[name], tolerances)


def assert_tensors_close(
    name: str,
    actual: torch.Tensor,
    expected: torch.Tensor,
    tolerances: Mapping[torch.dtype, Tolerance] = TOLERANCES,
) -> None:
    """`assert_close` for the tensor that `name` names in messages."""
    actual, expected = actual.detach().cpu(), expected.detach().cpu()
    if actual.shape != expected.shape:
        raise AssertionError(f"{name}: shape is {[*actual.shape]}, expected {[*expected.shape]}")
    if actual.dtype != expected.dtype:
        raise AssertionError(f"{name}: dtype is {actual.dtype}, expected {expected.dtype}")
    if actual.is_complex():
        actual, expected = torch.view_as_real(actual), torch.view_as_real(expected)
    if actual.numel() == 0:
        return
    if not actual.dtype.is_floating_point:
        _assert_exact(name, actual, expected)
        return
    limits = torch.finfo(actual.dtype)
    # The tolerance of a dtype of few bits.
    own = Tolerance(relative=limits.eps, absolute=limits.smallest_normal, cosine=limits.eps**2)
    tolerance = tolerances.get(actual.dtype, own)
    actual, expected = actual.double(), expected.double()
    if actual.equal(expected):
        return
    _assert_same_specials(name, actual, expected)
    _assert_within(name, actual, expected, tolerance)


def assert_same_bits(name: str, actual: torch.Tensor, expected: torch.Tensor, when: str) -> None:
    """Compare two results of one kernel, bit by bit; `when` says in messages what differed."""
    if bits(actual).equal(bits(expected)):
        return
    different = bits(actual).ne(bits(expected)).any(-1).flatten()
    at = int(different.nonzero()[0])
    raise AssertionError(
        f"{name}: {int(different.sum())} of {actual.numel()} elements differ {when}; the first at"
        f" {_position(at, actual.shape)}: {_value(actual, at)} instead of {_value(expected, at)}"
    )


def _assert_value_close(
    name: str, actual: object, expected: object, tolerances: Mapping[torch.dtype, Tolerance]
) -> None:
    if isinstance(actual, torch.Tensor) and isinstance(expected, torch.Tensor):
        assert_tensors_close(name, actual, expected, tolerances)
    elif isinstance(actual, float) and isinstance(expected, float):
        one, other = torch.tensor([actual, expected], dtype=torch.float64, device="cpu")
        assert_tensors_close(name, one, other, tolerances)
    elif type(actual) is not type(expected) or actual != expected:
        raise AssertionError(f"{name}: {actual!r}, expected {expected!r}")


def _assert_exact(name: str, actual: torch.Tensor, expected: torch.Tensor) -> None:
    wrong = actual.ne(expected).flatten()
    if wrong.any():
        gap = (actual.double() - expected.double()).abs().flatten().where(wrong, -1.0)
        _fail(name, actual, expected, int(wrong.sum()), int(gap.argmax()), "exact equality")


def _assert_same_specials(name: str, actual: torch.Tensor, expected: torch.Tensor) -> None:
    for what, mask in (("NaN", torch.isnan), ("+inf", torch.isposinf), ("-inf", torch.isneginf)):
        wrong = mask(actual).ne(mask(expected)).flatten()
        if wrong.any():
            at = int(wrong.nonzero()[0])
            _fail(name, actual, expected, int(wrong.sum()), at, f"{what} at the same positions")


def _assert_within(
    name: str, actual: torch.Tensor, expected: torch.Tensor, tolerance: Tolerance
) -> None:
    finite = expected.isfinite()
    actual, expected = actual.where(finite, 0.0), expected.where(finite, 0.0)
    error = (actual - expected).abs()
    excess = (error - tolerance.absolute - tolerance.relative * expected.abs()).flatten()
    wrong, outliers = int((excess > 0).sum()), tolerance.most_outliers(int(finite.sum()))
    if wrong > outliers:
        allowed = f"atol {tolerance.absolute:g}, rtol {tolerance.relative:g}"
        if outliers:
            allowed += f", and {outliers} wrong elements"
        _fail(name, actual, expected, wrong, int(excess.argmax()), allowed)
    norms = float(actual.square().sum() + expected.square().sum())
    cosine = float(error.square().sum()) / norms if norms else 0.0
    if cosine > tolerance.cosine:
        limit = f"a cosine difference of {tolerance.cosine:g}"
        allowed = f"{limit} over the whole tensor, not {cosine:g}"
        _fail(name, actual, expected, int((error > 0).sum()), int(error.argmax()), allowed)


def _fail(
    name: str, actual: torch.Tensor, expected: torch.Tensor, wrong: int, worst: int, allowed: str
) -> None:
    given, wanted = _value(actual, worst), _value(expected, worst)
    gap = "" if isinstance(given, bool) else f", off by {abs(given - wanted):g}"
    raise AssertionError(
        f"{name}: {wrong} of {actual.numel()} elements are wrong; the worst, at"
        f" {_position(worst, actual.shape)}, is {given} instead of {wanted}{gap};"
        f" allowed: {allowed}"
    )


def bits(tensor: torch.Tensor) -> torch.Tensor:
    """Return the bytes of each element, on the CPU: NaN is then equal to itself."""
    dense = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
    # A size of 1 may have any stride, which reshape would hand on.
    return dense.unsqueeze(-1).view(torch.uint8)


def _position(flat_index: int, shape: torch.Size) -> list[int]:
    index = torch.tensor(flat_index, device="cpu")
    return [int(each) for each in torch.unravel_index(index, shape)]


def _value(tensor: torch.Tensor, flat_index: int) -> float | int | bool:
    return tensor.detach().flatten()[flat_index].item()
