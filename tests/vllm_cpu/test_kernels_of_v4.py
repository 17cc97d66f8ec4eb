"""vLLM's own tests of its DeepSeek-V4 kernels, on the ops; a variable names the file."""

import os
import sys
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType
from typing import Any

import pytest
import torch
from custom_pypto_vllm.deepseek_v4 import rotate
from custom_pypto_vllm.hyper_connections import MhcHead, MhcPost, MhcPre
from torch import Tensor
from torch.nn.functional import pad, rms_norm
from vllm import _custom_ops
from vllm.model_executor.kernels import mhc

OPS: Any = torch.ops.custom_pypto
FP8, HALF = torch.float8_e4m3fn, torch.bfloat16
ROPE, PLAIN, SIZE = 64, 448, 512


def compress(pages: Any, x: Any, ape: Any, table: Any, at: Any, coff: int) -> Any:
    """Each token is a sequence of its own; x is its kv and score."""
    weights, ends = torch.eye(x.shape[1]).chunk(2), torch.arange(len(x) + 1)
    where = {"state_block_table": table[:, None], "cu_seqlens": ends, "start_pos": at}
    return OPS.npu_compressor(x, *weights, pages, ape, len(ape), **where, coff=coff)


def save(kv: Any, score: Any, ape: Any, positions: Any, cache: Any, slots: Any) -> None:
    pages, size = torch.cat((cache[:1], cache)), cache.shape[1]  # the op writes no page 0
    x = torch.cat((kv, score + ape[positions % len(ape)]), 1)
    compress(pages, x, ape * 0, slots // size + 1, slots % size, 1)
    cache.copy_(pages[1:])


def close(state: Any, window: Any, positions: Any, slots: Any, weight: Any, *more: Any) -> None:
    eps, angles, cache, block_size, ratio = more
    closes = ((positions + 1) % ratio == 0) & (slots >= 0)
    window, positions = window[closes], positions[closes]
    rows = state[window.clamp(0) // state.shape[1], window.clamp(0) % state.shape[1]]
    width = rows.shape[2] // 2
    rows[..., width:][window < 0] = -torch.inf
    pages, table = torch.cat((rows[:1], rows)), torch.arange(len(rows)) + 1
    last, ape = table * 0 + window.shape[1] - 1, torch.zeros(ratio, width)
    found = compress(pages, rows[:, -1], ape, table, last, width // len(weight))
    found = rms_norm(found, weight.shape, weight, eps)
    store(cache, slots[closes], block_size, rotate(found, angles[positions // ratio * ratio]))


def scaled(x: Tensor, least: float = 0.0) -> tuple[Tensor, Tensor]:
    exponent = (x.abs().amax(-1, keepdim=True).clamp(1e-4) / 448).log2().ceil()
    x = x * torch.exp2(-exponent)
    return x.where(x.abs() >= least, 0).to(FP8), exponent[..., 0]


def store(cache: Any, slots: Any, block_size: int, rows: Tensor, least: float = 0.0) -> None:
    """A row is fp8 with exponents, in bf16 where it is rotated; a key is fp8 with a scale."""
    is_key, rows = rows.shape[1] < SIZE, rows.to(HALF)
    parts = rows[:, None] if is_key else rows[:, :PLAIN].unflatten(1, (-1, ROPE))
    values, exponent = scaled(parts.float(), least)
    data, scales = values.flatten(1).view(torch.uint8), torch.exp2(exponent).view(torch.uint8)
    if not is_key:
        data = torch.cat((data, rows[:, PLAIN:].contiguous().view(torch.uint8)), 1)
        scales = pad((exponent + 127).to(torch.uint8), (0, 1))
    begin, used = 0, slots[slots >= 0, None]
    for part in (data, scales):
        columns = used % block_size * part.shape[1] + torch.arange(part.shape[1])
        cache[used // block_size, begin + columns] = part[slots >= 0]
        begin = block_size * part.shape[1]


def load(cache: Tensor, block_size: int) -> Tensor:
    data, scales = (each.flatten() for each in cache.split([block_size * 576, block_size * 8], 1))
    plain, rope = data.view(-1, 576).split([PLAIN, 2 * ROPE], 1)
    scales = torch.exp2(scales.view(-1, 8, 1)[:, :7].float() - 127)
    plain = (plain.view(FP8).float().unflatten(1, (-1, ROPE)) * scales).flatten(1).to(HALF)
    return torch.cat((plain, rope.contiguous().view(HALF)), 1)[None, :, None]


def attend(out: Any, q: Any, near: Any, near_slots: Any, near_size: int, *more: Any) -> None:
    far, far_slots, far_size, sinks, scale = more
    given = {"sinks": sinks, "softmax_scale": scale, "ori_mask_mode": 0, "cmp_mask_mode": 0}
    given["ori_sparse_indices"] = near_slots.int()[None, :, None]
    if far_slots.shape[1]:
        given["cmp_kv"] = load(far, far_size)
        given["cmp_sparse_indices"] = far_slots.int()[None, :, None]
    out.copy_(OPS.npu_sparse_flash_mla(q[None], ori_kv=load(near, near_size), **given)[0][0])


def insert(q: Any, kv: Any, positions: Any, cache: Any, slots: Any, *more: Any) -> Tensor:
    angles, heads, eps, block_size = more
    rows = rotate(kv.float(), angles[positions])[: len(slots)]
    store(cache, slots, block_size, rows, least=2**-6)  # as vLLM's kernel
    query = rotate(rms_norm(q.float(), (SIZE,), eps=eps), angles[positions])
    return pad(query.to(q.dtype), (0, 0, 0, heads - q.shape[1]))


def logits(q: Any, pages: Any, weights: Any, lengths: Any, table: Any, *more: Any) -> Tensor:
    size, longest = more
    keys, scales = (each.contiguous() for each in pages.split([size * 128, size * 4], 1))
    keys, scales = keys.view(FP8).view(-1, size, 1, 128), scales.view(torch.float32)[..., None]
    options = {"layout_q": "TND", "layout_k": "PA_BBND", "return_value": 1, "seqused_k": lengths}
    options |= {"block_table": table.clamp(0), "cu_seqlens_q": torch.arange(len(q) + 1)}
    inputs = q, keys, weights, torch.ones_like(weights), scales, longest, 1
    found, scores = (each[:, 0] for each in OPS.npu_quant_lightning_indexer_v2(*inputs, **options))
    found = found.long().where(found >= 0, longest)
    return torch.zeros(len(q), longest + 1).scatter(1, found, scores.float())[:, :longest]


def index_query(positions: Any, q: Any, angles: Any, out: Any, weights: Any, *more: Any) -> None:
    rows = rotate(q, angles[positions])
    rows[..., -ROPE:] = rows[..., -ROPE:].to(HALF)
    values, exponent = scaled(rows)
    out.copy_(values)
    more[2].copy_(weights * torch.exp2(exponent) * more[0] * more[1])


def streams_in(x: Tensor, *args: Any) -> tuple[Tensor, Tensor, Tensor]:
    post, mixed, inputs = MhcPre()(x, *args[:8])
    return post.unsqueeze(-1), mixed, inputs


OURS: dict[str, Any] = {
    "save_partial_states_cpu": save,
    "compress_norm_rope_store_cpu": close,
    "compress_norm_rope_store_indexer_cpu": close,
    "flash_mla_with_kvcache_cpu": attend,
    "fused_qnorm_rope_kv_insert_cpu": insert,
    "inverse_gptj_rope_o_proj_cpu": lambda o, at, angles, _: rotate(o.float(), angles[at], -1),
    "fp8_paged_mqa_logits_cpu": logits,
    "fused_indexer_q_rope_quant_cpu": index_query,
}
OURS_OF_MHC: dict[str, Any] = {
    "mhc_pre_cpu": streams_in,
    "mhc_post_cpu": lambda x, streams, post, mixed: MhcPost()(x, streams, post[..., 0], mixed),
    "hc_head_fused_cpu": MhcHead(),
}


def angles_of(count: int, size: int, *_: Any) -> Tensor:
    turns = torch.outer(torch.arange(count), 1e4 ** (-torch.arange(0, size, 2) / size))
    return torch.cat((turns.cos(), turns.sin()), 1)


def ulps(dtype: torch.dtype, a: Tensor, b: Tensor) -> Tensor:
    numbers = (each.view(dtype).int() for each in (a, b))
    first, second = (x.where(x >= 0, torch.iinfo(dtype).min - x) for x in numbers)
    return (first - second).abs()


def import_theirs() -> dict[str, Any]:
    """Import the file, with what it takes from its neighbours, which are not there."""
    sizes = {"HEAD_DIM": SIZE, "NOPE_DIM": PLAIN, "QUANT_BLOCK": ROPE, "ROPE_DIM": ROPE}
    neighbours: dict[str, dict[str, Any]] = {
        "tests": {},
        "tests.kernels": {},
        "tests.kernels.test_fused_deepseek_v4_qnorm_rope_kv_insert": sizes,
        "tests.kernels.utils": {
            "bf16_ulp_distance": lambda a, b: ulps(torch.int16, a, b),
            "fp8_ulp_distance": lambda a, b: ulps(torch.int8, a, b),
        },
    }
    spec: Any = spec_from_file_location("kernels_of_v4", FILE)
    module = module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        for name, values in neighbours.items():
            patch.setitem(sys.modules, name, ModuleType(name))
            vars(sys.modules[name]).update(values, make_cos_sin_cache=angles_of)
        spec.loader.exec_module(module)
    vars(module).update(OURS)
    return {name: each for name, each in vars(module).items() if name.startswith("test_")}


@pytest.fixture(autouse=True)
def ours(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, functions in ((_custom_ops, OURS), (mhc, OURS_OF_MHC)):
        for name, function in functions.items():
            monkeypatch.setattr(module, name, function)


FILE = os.environ.get("CUSTOM_PYPTO_TEST_VLLM_V4_KERNELS")
if FILE is None:
    reason = "CUSTOM_PYPTO_TEST_VLLM_V4_KERNELS names no test_deepseek_v4_cpu_kernels.py"
    pytest.skip(reason, allow_module_level=True)
globals().update(import_theirs())
