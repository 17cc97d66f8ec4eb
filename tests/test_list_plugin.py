"""A plugin whose ops take, write and return lists of tensors; nothing by hand but the kernels."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from repository import ROOT, copy_sources
from scratch import Scratch

PLUGIN = ROOT / "tests" / "third_party" / "lists"

USE = """\
import torch
from acme_lists import add_products_, scale_each

def refused(function, *args, **kwargs):
    try:
        function(*args, **kwargs)
    except RuntimeError as error:
        print(error)

xs = [torch.ones(2), torch.full((1, 2), 4.0)]
ys, sums = scale_each(xs, scale=2)
print([y.tolist() for y in ys], sums.tolist())
refused(scale_each, [])
refused(scale_each, xs, [xs[0], xs[0]])
refused(scale_each, xs, scale=-float("nan"))
one = torch.zeros(2, 2)
refused(add_products_, [one, one[:1]], [one, one[:1]], torch.ones(2, 2))
refused(add_products_, [one, one.clone()], [one.clone(), one[:, :1].clone()], torch.ones(2, 2))
compiled = torch.compile(lambda xs: scale_each(xs)[0], fullgraph=True, dynamic=True)
print([y.tolist() for y in compiled(xs)])
help(torch.ops.custom_pypto.add_products_)
"""
USED = """\
[[2.0, 2.0], [[6.0, 6.0]]] [4.0, 12.0]
scale_each: argument 'xs' must have at least 1 tensor, got 0
scale_each: argument 'offsets[1]' must have the shape of 'xs[1]' [1, 2], got [2]
scale_each: argument 'scale' must be more than -inf and less than inf, got nan
add_products_: argument 'totals[1]' is written in place, but overlaps argument 'totals[0]', which \
is written too; pass a tensor of its own, such as a clone() made outside of compiled code: \
Inductor drops clones
add_products_: argument 'rows[1]' must have size 2 in dimension 1 (K), got 1 in [2, 1]
[[1.0, 1.0], [[4.0, 4.0]]]
"""


@pytest.fixture(scope="module")
def environment(
    tmp_path_factory: pytest.TempPathFactory, with_plugin: Callable[..., Scratch]
) -> Scratch:
    """An environment with core and the plugin."""
    return with_plugin(copy_sources(PLUGIN, tmp_path_factory.mktemp("elsewhere") / "lists"))


def test_an_error_names_the_tensor_in_the_list(environment):
    printed = environment.run("-c", USE).stdout
    assert printed.startswith(USED)
    assert "totals   E tensors; [M[i], N], dtype of columns; written in place" in printed


def test_passes_the_conformance_suite(environment):
    environment.expect_passes("custom_pypto_testing", "acme_lists", "-k", "not inductor")
