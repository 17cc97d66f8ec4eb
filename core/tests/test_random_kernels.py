"""C++ kernels that draw from torch's default generator."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from cpp_library import SOURCES, Library, registered
from custom_pypto.core.python_kernels import PythonKernels, is_random
from custom_pypto_contract import manifest, ops_file

ops = torch.ops.custom_pypto
TAG = torch.Tag.nondeterministic_seeded


@pytest.fixture(scope="module", autouse=True)
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    made = [manifest.make_op(each.data) for each in ops_file.read(SOURCES / "random.toml").ops]
    kernels = PythonKernels()
    try:
        # As core does before it opens a library.
        kernels.define(filter(is_random, made))
        yield from registered(tmp_path_factory, "random")
    finally:
        kernels.remove()


def test_seed_repeats_a_call_and_no_seed_does_not() -> None:
    x = torch.empty(100)
    torch.manual_seed(3)
    one, other = ops.random_uniform(x), ops.random_uniform(x)
    torch.manual_seed(3)
    assert ops.random_uniform(x).equal(one)
    assert not other.equal(one)
    assert 0 <= float(one.min()) < 0.2 < 0.8 < float(one.max()) < 1


def test_only_the_random_op_has_the_tag_of_torch() -> None:
    assert TAG in ops.random_uniform.default.tags
    assert TAG not in ops.random_none.default.tags
