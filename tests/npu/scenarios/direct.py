"""The kernel of advance_step that is launched directly, on the machine that has it."""

from typing import Any

import torch
from custom_pypto_advance_step import samples
from torch import Tensor

from scenarios.calls import count_phase_1, refusal

BLOCK_SIZE, COLUMNS = 16, 5
"""The defaults of `samples.call`: tokens in a block, columns of a block table."""
CALLS = {
    "padded": (8, 3, torch.int64),
    "full": (8, 8, torch.int64),
    "padding-only": (8, 0, torch.int64),
    "int32": (5, 4, torch.int32),
    "full-int32": (17, 17, torch.int32),
    "many-cores": (1300, 1299, torch.int64),
    "nothing": (0, 0, torch.int32),
}

op = torch.ops.custom_pypto.npu_advance_step_flashattn


def agrees_with_the_cpu_where_aclnn_does_not_apply() -> None:
    """Bit by bit, without phase 1: int32, also of one tensor, full batches, slots from 2^31 on."""
    calls = {name: _both(*call) for name, call in CALLS.items()}
    strided = _both(8, 3, torch.int64)
    for call in strided:
        call[1] = call[1].flatten()
    strided[0][5] = torch.cat([strided[0][5], strided[0][5]], 1)[:, :COLUMNS]
    assert not strided[0][5].is_contiguous()
    calls["flat tokens, strided table"] = strided
    for narrow in range(6):
        calls[f"int32 {narrow}"] = mixed = _both(40, 39, torch.int64, first=100)
        for call in mixed:
            call[narrow] = call[narrow].int()

    def run_all() -> None:
        for on_npu, on_cpu in calls.values():
            op(*on_npu)
            op(*on_cpu)

    assert count_phase_1(run_all) == (None, 0)
    for name, (on_npu, on_cpu) in calls.items():
        for actual, expected in zip(_tensors(on_npu), _tensors(on_cpu), strict=True):
            assert torch.equal(actual.cpu(), expected), name


def gives_no_slot_where_the_cpu_refuses() -> list[int]:
    """The slots of a length outside the table, of a negative one, and of an unused block."""
    call, _ = _both(4, 4, torch.int64, first=3)
    call[3].copy_(torch.tensor([COLUMNS * BLOCK_SIZE, -1, 20, 21]))
    call[5][2] = -1
    op(*call)
    slots: list[int] = call[4].tolist()
    assert slots[3] == int(call[5][3, 1]) * BLOCK_SIZE + 5
    return slots[:3]


def refusal_of_int32() -> str:
    """The error for int32."""
    call, _ = _both(8, 3, torch.int32)
    return refusal(op, *call)


def _both(
    seqs: int, queries: int, dtype: torch.dtype, first: int | None = None
) -> tuple[list[Any], list[Any]]:
    """A call on npu and the same on the CPU; `first` is the least of the block numbers."""
    if first is None:
        first = 2**31 - 2 if dtype == torch.int64 else 2**27 - 1000
    sample = samples.call("cpu", num_seqs=seqs, num_queries=queries, dtype=dtype, first=first)
    call = list(sample.args)
    return [each.to("npu") if isinstance(each, Tensor) else each for each in call], call


def _tensors(call: list[Any]) -> list[Tensor]:
    return [each for each in call if isinstance(each, Tensor)]
