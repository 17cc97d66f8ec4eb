"""Whether strided tensors overlap, against their bytes counted one by one."""

from itertools import product
from random import Random

from custom_pypto.core.argument_memory import ByteRuns, Overlap, overlap_of

Layout = tuple[list[int], list[int], int]
"""Sizes, strides, bytes of an element."""


def all_bytes(layout: Layout) -> list[int]:
    sizes, strides, width = layout
    return [
        sum(i * stride for i, stride in zip(index, strides, strict=True)) * width + byte
        for index in product(*map(range, sizes))
        for byte in range(width)
    ]


def anything(random: Random) -> Layout:
    dims = range(random.randint(0, 4))
    strides = [random.choice([0, 1, 2, 3, 4, 6, 8, 12, 16, 24]) for _ in dims]
    return [random.randint(1, 4) for _ in dims], strides, random.choice([1, 2, 4])


def nested(random: Random) -> Layout:
    """Each stride spans what is inside, as in a slice of a contiguous tensor, in any order."""
    dims, span = [], 1
    for _ in range(random.randint(0, 4)):
        stride, size = span * random.choice([1, 1, 2]), random.randint(1, 4)
        dims.append((size, stride))
        span = stride * size
    random.shuffle(dims)
    return [size for size, _ in dims], [stride for _, stride in dims], random.choice([1, 2, 4])


def verdict(a: Layout, b: Layout, shift: int) -> Overlap:
    return overlap_of(ByteRuns(*a), ByteRuns(*b), shift)


def test_verdicts_agree_with_the_bytes() -> None:
    random = Random(1)
    seen = set()
    for _ in range(1200):
        a = random.choice([anything, nested])(random)
        b = random.choice([anything, nested, lambda random, a=a: a])(random)
        shift = random.randint(-20, 60)
        overlaps = not {byte + shift for byte in all_bytes(b)}.isdisjoint(all_bytes(a))
        found = verdict(a, b, shift)
        assert found is Overlap.POSSIBLE or overlaps == (found is Overlap.CERTAIN), (a, b, shift)
        assert verdict(b, a, -shift) is found
        seen.add((found, overlaps))
    assert len(seen) == 4


def test_verdict_is_certain_for_two_slices_of_the_same_sizes_and_strides() -> None:
    random = Random(2)
    for _ in range(500):
        layout = nested(random)
        assert verdict(layout, layout, random.randint(-20, 60)) is not Overlap.POSSIBLE


def test_elements_that_share_memory_are_always_found() -> None:
    random = Random(3)
    for _ in range(1000):
        layout = anything(random)
        given = all_bytes(layout)
        if 0 not in layout[1]:
            assert ByteRuns(*layout).may_repeat or len(set(given)) == len(given), layout


def test_elements_of_slices_never_seem_to_share_memory() -> None:
    random = Random(4)
    for _ in range(1000):
        assert not ByteRuns(*nested(random)).may_repeat
