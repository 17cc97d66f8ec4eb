"""Decode steps as vllm-ascend calls them, but for the namespace, on an NPU and on the CPU."""

import inspect

import custom_pypto_serving
import torch
import torch_npu  # noqa: F401


def arguments_of(function):
    if isinstance(function, torch._ops.OpOverloadPacket):
        return [argument.name for argument in function.default._schema.arguments]
    return list(inspect.signature(function).parameters)


# The served functions have the arguments of this torch_npu's.
for name in ("npu_lightning_indexer", "npu_sparse_flash_attention"):
    theirs = arguments_of(getattr(torch.ops.npu, name))
    assert arguments_of(getattr(custom_pypto_serving, name)) == theirs, name

torch.manual_seed(0)
# Three and one tokens of two requests, two rows of padding, and a dummy request.
TOKENS, HEADS, PAGES, REAL = 6, 16, 6, 4
query_index = torch.randn(TOKENS, 64, 128, dtype=torch.bfloat16)
weights = torch.randn(TOKENS, 64, dtype=torch.bfloat16)
ql_nope = torch.randn(TOKENS, HEADS, 512, dtype=torch.bfloat16)
q_pe = torch.randn(TOKENS, HEADS, 64, dtype=torch.bfloat16)
kv_cache = tuple(torch.randn(PAGES, 128, 1, size, dtype=torch.bfloat16) for size in (512, 64, 128))
actual_seq_lengths_query = torch.tensor([3, 4, 4], dtype=torch.int32)
actual_seq_lengths_key = torch.tensor([301, 70, 0], dtype=torch.int32)
block_table = torch.tensor([[5, 0, 3], [1, 0, 0], [0, 0, 0]], dtype=torch.int32)


def decode(device):
    options = {
        "actual_seq_lengths_query": actual_seq_lengths_query.to(device),
        "block_table": block_table.to(device),
        "layout_query": "TND",
        "sparse_mode": 3,
    }
    lengths = actual_seq_lengths_key.to(device)
    cache = [part.to(device) for part in kv_cache]
    topk_indices, _ = custom_pypto_serving.npu_lightning_indexer(
        query=query_index.to(device),
        key=cache[2],
        weights=weights.to(device),
        actual_seq_lengths_key=lengths,
        layout_key="PA_BSND",
        sparse_count=64,
        **options,
    )
    result = custom_pypto_serving.npu_sparse_flash_attention(
        query=ql_nope.to(device),
        key=cache[0],
        value=cache[0],
        sparse_indices=topk_indices,
        scale_value=0.04,
        sparse_block_size=1,
        actual_seq_lengths_kv=lengths,
        query_rope=q_pe.to(device),
        key_rope=cache[1],
        layout_kv="PA_BSND",
        attention_mode=2,
        return_softmax_lse=False,
        **options,
    )
    assert result[0].device.type == torch.device(device).type
    return topk_indices[:REAL].cpu(), result[0][:REAL].cpu()


(found, out), (expected, close) = decode("npu"), decode("cpu")
assert torch.equal(found.sort(-1).values, expected.sort(-1).values)
torch.testing.assert_close(out, close, rtol=0.02, atol=0.002)
print("same result")
