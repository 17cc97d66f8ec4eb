"""Results for any number of threads."""

from __future__ import annotations

import torch

from custom_pypto_testing.call import Call
from custom_pypto_testing.case import Case
from custom_pypto_testing.comparison import assert_same_bits

from .side_effects import results_of


def check_threads(case: Case) -> None:
    """One thread and two give the same bits, in outputs and in mutated arguments."""
    one, two = _run_with_threads(case, 1), _run_with_threads(case, 2)
    for name, tensor in two.items():
        assert_same_bits(f"{case.name}: {name}", tensor, one[name], "with two threads from one")


def _run_with_threads(case: Case, count: int) -> dict[str, torch.Tensor]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        return results_of(case.call(), Call.run)
    finally:
        torch.set_num_threads(before)
