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


# DeepSeek-V4: a window of 128 tokens, and rows for 4 tokens each.
RATIO, HIDDEN = 4, 1024
bounds = torch.tensor([0, 3, 4, 4], dtype=torch.int32)
starts = actual_seq_lengths_key - bounds.diff()
streams = torch.randn(TOKENS, 4, HIDDEN, dtype=torch.bfloat16)
hyper_connections = torch.randn(24, 4 * HIDDEN) / 64, torch.randn(3), torch.randn(24)
wkv_wgate = torch.randn(2, 2 * 128, HIDDEN, dtype=torch.bfloat16) / 32
norm, angles = torch.randn(128, dtype=torch.bfloat16), torch.randn(2, TOKENS // RATIO + 3, 64)
state, ape = torch.randn(PAGES, 128, 4 * 128), torch.randn(RATIO, 2 * 128)
quantised = [
    (torch.randn(*shape) * 40).round().clamp(-127, 127).to(torch.int8)
    for shape in ((TOKENS, 64, 128), (PAGES, 128, 1, 128))
]
scales = [torch.rand(each.shape[:-1], dtype=torch.float16) / 100 for each in quantised]
q = torch.randn(TOKENS, HEADS, 512, dtype=torch.bfloat16)
rows = [torch.randn(PAGES, 128, 1, 512, dtype=torch.bfloat16) for _ in range(2)]
sinks = torch.randn(HEADS)


def decode_v4(device):
    def to(*tensors):
        return [each.to(device) for each in tensors]

    (x,) = to(streams)
    hidden, post, comb = custom_pypto_serving.npu_hc_pre(x, *to(*hyper_connections))
    written, table, cu_seqlens_q, lengths = to(state, block_table, bounds, actual_seq_lengths_key)
    closed = custom_pypto_serving.compressor(
        hidden,
        *to(*wkv_wgate),
        written,
        *to(ape, norm, *angles),
        state_block_table=table,
        cu_seqlens=cu_seqlens_q,
        start_pos=starts.to(device),
        cmp_ratio=RATIO,
        coff=2,
        rotary_mode=2,
    )
    picked, _ = custom_pypto_serving.npu_vllm_quant_lightning_indexer(
        *to(*quantised, weights.half(), *scales),
        actual_seq_lengths_query=cu_seqlens_q[1:],
        actual_seq_lengths_key=lengths,
        block_table=table,
        layout_query="TND",
        layout_key="PA_BSND",
        sparse_count=512,
        cmp_ratio=RATIO,
    )
    options = {
        "cu_seqlens_q": cu_seqlens_q,
        "seqused_kv": lengths,
        "cmp_ratio": RATIO,
        "ori_win_left": 127,
        "layout_q": "TND",
    }
    metadata = custom_pypto_serving.npu_sparse_attn_sharedkv_metadata(
        HEADS, 1, 512, batch_size=3, max_seqlen_q=3, max_seqlen_kv=301, cmp_topk=512, **options
    )
    ori_kv, cmp_kv = to(*rows)
    out, _ = custom_pypto_serving.npu_sparse_attn_sharedkv(
        q.to(device),
        ori_kv=ori_kv,
        cmp_kv=cmp_kv,
        cmp_sparse_indices=picked,
        ori_block_table=table,
        cmp_block_table=table,
        sinks=sinks.to(device),
        metadata=metadata,
        **options,
    )
    after = custom_pypto_serving.npu_hc_post(hidden, x, post, comb)
    results = hidden, closed[:1], written, picked[:REAL].sort(-1).values, out[:REAL], after
    assert {each.device.type for each in results} == {torch.device(device).type}
    return [each.cpu() for each in results]


(found, out), (expected, close) = decode("npu"), decode("cpu")
assert torch.equal(found.sort(-1).values, expected.sort(-1).values)
torch.testing.assert_close(out, close, rtol=0.02, atol=0.002)
torch.testing.assert_close(decode_v4("npu"), decode_v4("cpu"), rtol=0.02, atol=0.002)
print("same result")
