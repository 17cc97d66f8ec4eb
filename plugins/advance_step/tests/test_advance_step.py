"""Values that npu_advance_step_flashattn writes, and those that it leaves."""

from typing import Any

import custom_pypto  # noqa: F401
import custom_pypto_advance_step
import pytest
import torch
from refusals import assert_refused

advance_step = torch.ops.custom_pypto.npu_advance_step_flashattn


WRITTEN = ("input_tokens", "input_positions", "seq_lens", "slot_mapping")


def call(dtype: torch.dtype = torch.int64, **changes: Any) -> dict[str, Any]:
    """Three sequences, the last one padding, with blocks of 4."""
    arguments = {
        "input_tokens": torch.tensor([1, 2, 3]),
        "sampled_token_ids": torch.tensor([[70], [80]]),
        "input_positions": torch.tensor([5, 6, 7]),
        "seq_lens": torch.tensor([3, 4, 9]),
        "slot_mapping": torch.tensor([0, 0, 0]),
        "block_tables": torch.tensor([[10, 11], [20, 21], [30, 31]]),
    }
    given: dict[str, Any] = {name: value.to(dtype) for name, value in arguments.items()}
    return {**given, "num_seqs": 3, "num_queries": 2, "block_size": 4, **changes}


def written(given: dict[str, Any]) -> list[list[int]]:
    return [given[name].tolist() for name in WRITTEN]


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_counts_on_and_pads(dtype: torch.dtype) -> None:
    given = call(dtype)
    assert advance_step(**given) is None
    # 3 is the last of its block, 4 the first of the next.
    assert written(given) == [[70, 80, 0], [3, 4, 0], [4, 5, 9], [43, 84, -1]]


def test_slots_above_2_to_the_31_are_exact() -> None:
    block = 2**31 + 1
    given = call(block_tables=torch.full((3, 2), block))
    advance_step(**given)
    assert given["slot_mapping"].tolist() == [4 * block + 3, 4 * block, -1]


LENGTHS, TABLES = "seq_lens", "block_tables"
ENDS = "must be from 0 to 7 (2 blocks of 4 in a row of block_tables), got"
MANY = f"must be from 0 to {2**63 - 1} (2 blocks of {2**62 + 1} in a row of block_tables), got -1"
SLOTS = "whose slots are negative or do not"
ZEROS, LARGE = torch.zeros(3).int(), torch.full((3, 2), 2**30)
NEGATIVE, LONG = torch.tensor([-1, 4, 9]), torch.tensor([2**63 - 1, 4, 9])
SAMPLED = torch.tensor([1, 2**40])
REFUSED: list[tuple[str, str, dict[str, Any]]] = [
    (LENGTHS, f"{ENDS} 8 for s", {LENGTHS: torch.tensor([3, 8, 9])}),
    (LENGTHS, f"{ENDS} -1 for s", {LENGTHS: NEGATIVE}),
    # More tokens than int64 counts.
    (LENGTHS, MANY, {LENGTHS: NEGATIVE, "block_size": 2**62 + 1}),
    (LENGTHS, f"cannot hold {2**63 - 1} + 1 for s", {LENGTHS: LONG, "block_size": 2**63 - 1}),
    ("slot_mapping", "cannot hold 4294967299 for s", {"slot_mapping": ZEROS, TABLES: LARGE}),
    ("input_tokens", f"hold {2**40} for s", {"input_tokens": ZEROS, "sampled_token_ids": SAMPLED}),
    (TABLES, f"has the block {2**62} for sequence 0, {SLOTS}", {TABLES: LARGE * 2**32}),
    (TABLES, f"has the block -1 for sequence 1, {SLOTS}", {TABLES: torch.tensor([[10, -1]] * 3)}),
]


@pytest.mark.parametrize(("name", "text", "changes"), REFUSED)
def test_a_value_that_cannot_be_is_refused(name: str, text: str, changes: dict[str, Any]) -> None:
    assert_refused("npu_advance_step_flashattn", call(**changes), name, text, is_of_values=True)


def test_the_other_name_takes_the_arguments_in_its_order() -> None:
    given = call()
    numbers = [given.pop(name) for name in ("num_seqs", "num_queries", "block_size")]
    assert custom_pypto_advance_step.adv_step_flash(*numbers, *given.values()) is None
    assert written(given) == [[70, 80, 0], [3, 4, 0], [4, 5, 9], [43, 84, -1]]


class Step(torch.nn.Module):
    """A step whose scalars are sizes of its tensors."""

    def forward(self, *tensors: torch.Tensor) -> torch.Tensor:
        sequences = tensors[0].shape[0]
        advance_step(*tensors, sequences, sequences, 4)
        return tensors[0] + 1  # after the op has written it


def test_exported_program_takes_another_batch() -> None:
    batches = [[torch.arange(n) + start for start in (0, 50, 0, 3, 0)] for n in (5, 9, 9)]
    given, actual, expected = ((*each, each[0].view(-1, 1).repeat(1, 4)) for each in batches)
    dynamic = {"tensors": tuple({0: torch.export.Dim.DYNAMIC} for _ in range(6))}
    program = torch.export.export(Step(), given, dynamic_shapes=dynamic)
    assert torch.equal(program.module()(*actual), Step()(*expected))
    assert [each.tolist() for each in actual] == [each.tolist() for each in expected]
