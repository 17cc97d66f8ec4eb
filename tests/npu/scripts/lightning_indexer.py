"""Written as the published examples are: nothing in it knows of plugins or of a simulator."""

import custom_pypto  # noqa: F401
import torch
import torch_npu  # noqa: F401
import torchair
from torchair.configs.compiler_config import CompilerConfig


def select(query, key, weights, lengths, table):
    """Run the op on a paged key cache."""
    return torch.ops.custom_pypto.npu_lightning_indexer_pto(
        query,
        key,
        weights,
        actual_seq_lengths_key=lengths,
        block_table=table,
        layout_query="BSND",
        layout_key="PA_BSND",
        sparse_count=2048,
        sparse_mode=3,
    )


torch.npu.set_device(0)
torch.manual_seed(0)
arguments = (
    torch.randn(2, 3, 64, 128, dtype=torch.bfloat16),
    torch.randn(4, 128, 1, 128, dtype=torch.bfloat16),
    torch.randn(2, 3, 64, dtype=torch.bfloat16),
    torch.tensor([122, 200], dtype=torch.int32),
    torch.tensor([[2, -1], [0, 3]], dtype=torch.int32),
)
on_npu = [tensor.npu() for tensor in arguments]
backend = torchair.get_npu_backend(compiler_config=CompilerConfig())
graph = torch.compile(select, backend=backend, dynamic=False, fullgraph=True)
expected = select(*arguments)
assert torch.equal(select(*on_npu).cpu(), expected)
assert torch.equal(graph(*on_npu).cpu(), expected)
print("same result")
