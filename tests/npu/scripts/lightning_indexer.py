"""Written as the published examples are: nothing in it knows of plugins or of a simulator."""

import custom_pypto  # noqa: F401
import torch
import torch_npu  # noqa: F401
import torchair
from torchair.configs.compiler_config import CompilerConfig


class Network(torch.nn.Module):
    """One layer that selects tokens."""

    def forward(self, query, key, weights, actual_seq_lengths_key, block_table):
        """Run the op on a paged key cache."""
        return torch.ops.custom_pypto.npu_lightning_indexer_pto(
            query,
            key,
            weights,
            actual_seq_lengths_key=actual_seq_lengths_key,
            block_table=block_table,
            layout_query="BSND",
            layout_key="PA_BSND",
            sparse_count=2048,
            sparse_mode=3,
        )


torch.npu.set_device(0)
torch.manual_seed(0)
batch, tokens, heads, depth, block_size = 2, 3, 64, 128, 128
query = torch.randn(batch, tokens, heads, depth, dtype=torch.bfloat16)
key = torch.randn(4, block_size, 1, depth, dtype=torch.bfloat16)
weights = torch.randn(batch, tokens, heads, dtype=torch.bfloat16)
lengths = torch.tensor([122, 200], dtype=torch.int32)
block_table = torch.tensor([[2, -1], [0, 3]], dtype=torch.int32)
arguments = (query, key, weights, lengths, block_table)
on_npu = [tensor.npu() for tensor in arguments]

network = Network()
expected = network(*arguments)
eager = network.npu()(*on_npu)

compiler_config = CompilerConfig()
npu_backend = torchair.get_npu_backend(compiler_config=compiler_config)
compiled = torch.compile(network, backend=npu_backend, dynamic=False, fullgraph=True)
graph = compiled(*on_npu)

assert torch.equal(eager.cpu(), expected)
assert torch.equal(graph.cpu(), expected)
print("same result")
