"""Sample inputs of the ops, also for the plugin's tests: every case, layout and mask."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from custom_pypto_plugin import SampleInput
from torch import Tensor

Arguments = dict[str, Any]


@dataclass(frozen=True)
class Sizes:
    """The sizes of a call, all different by default: torch.compile takes equal sizes for one."""

    heads: int = 9
    columns: int = 24
    tokens: tuple[int, ...] = (5, 1, 4)
    """The query tokens of each sequence; in layout BSND each has the most of them."""
    rows: tuple[int, ...] = (37, 9, 90)
    """The rows of ori_kv of each sequence."""
    ratio: int = 4
    picks: int = 11
    window: int = 8
    block_size: int = 13
    dtype: torch.dtype = torch.bfloat16

    @property
    def compressed(self) -> tuple[int, ...]:
        """The rows of cmp_kv of each sequence."""
        return tuple(length // self.ratio for length in self.rows)


SMALL = Sizes()
SMALL_RESIZED = replace(SMALL, tokens=(6, 2, 3, 1), rows=(45, 12, 100, 20), picks=14)
# As CANN's kernels take them.
DEEPSEEK = Sizes(64, 512, (2, 1), (150, 300), 4, 512, 128, 128)
DEEPSEEK_RESIZED = replace(DEEPSEEK, tokens=(3, 2, 2), rows=(140, 310, 200))
# Options and layouts as SMALL has them: torch.compile makes one graph of both.
TINY = replace(SMALL, heads=2, columns=3, tokens=(2, 1), rows=(13, 6), picks=3, block_size=2)
FP64 = replace(TINY, dtype=torch.float64)
LARGE = replace(DEEPSEEK, rows=(2600, 700), window=SMALL.window)


class _Data:
    """Random tensors from one seeded generator, made on the CPU."""

    def __init__(self, sizes: Sizes, device: str, seed: int = 0) -> None:
        self.sizes, self.device = sizes, device
        self.generator = torch.Generator().manual_seed(seed)

    def normal(self, *shape: int, dtype: torch.dtype | None = None) -> Tensor:
        values = torch.randn(shape, generator=self.generator, device="cpu", dtype=torch.float32)
        return values.to(dtype or self.sizes.dtype).to(self.device)

    def integers(self, values: Any) -> Tensor:
        return torch.as_tensor(values, dtype=torch.int32, device="cpu").to(self.device)

    def starts(self, lengths: tuple[int, ...]) -> Tensor:
        return self.integers([sum(lengths[:b]) for b in range(len(lengths) + 1)])

    def rows(self, lengths: tuple[int, ...], layout: str) -> tuple[Tensor, Tensor | None]:
        """Rows of these lengths, and a block table if they are paged."""
        columns, size = self.sizes.columns, self.sizes.block_size
        if layout == "TND":
            return self.normal(sum(lengths), 1, columns), None
        if layout == "BSND":
            return self.normal(len(lengths), max(lengths), 1, columns), None
        width = -(-max(lengths) // size)
        blocks = len(lengths) * width + 2
        order = torch.randperm(blocks, generator=self.generator, device="cpu")
        table = order[: len(lengths) * width].view(len(lengths), width)
        return self.normal(blocks, size, 1, columns), self.integers(table)

    def picks(self, leading: tuple[int, ...], lengths: list[int], count: int) -> Tensor:
        """For each token up to `count` distinct rows, with -1 strewn in."""
        picked = torch.full((len(lengths), count), -1, device="cpu")
        for row, length in zip(picked, lengths, strict=True):
            chosen = torch.randperm(length, generator=self.generator, device="cpu")[:count]
            places = torch.randperm(count, generator=self.generator, device="cpu")[: len(chosen)]
            row[places] = chosen
        return self.integers(picked.view(*leading, 1, count))


def arguments(
    sizes: Sizes,
    case: str = "csa",
    layout_q: str = "BSND",
    layout_kv: str | None = None,
    device: str = "cpu",
    **changes: Any,
) -> Arguments:
    """A call of npu_sparse_flash_mla: case "window", "csa", "hca" or "sparse" (of ori_kv)."""
    data = _Data(sizes, device)
    layout = layout_kv or layout_q
    is_tnd, batch, most = layout_q == "TND", len(sizes.tokens), max(sizes.tokens)
    leading = (sum(sizes.tokens),) if is_tnd else (batch, most)
    counts = sizes.tokens if is_tnd else (most,) * batch
    sequences = [b for b, count in enumerate(counts) for _ in range(count)]
    given: Arguments = {"q": data.normal(*leading, sizes.heads, sizes.columns)}
    given["sinks"] = data.normal(sizes.heads, dtype=torch.float32)
    for name, lengths in (("ori", sizes.rows), ("cmp", sizes.compressed)):
        if name == "cmp" and case in ("window", "sparse"):
            continue
        given[f"{name}_kv"], table = data.rows(lengths, layout)
        if layout == "TND":
            given[f"cu_seqlens_{name}_kv"] = data.starts(lengths)
        else:
            given[f"seqused_{name}_kv"] = data.integers(lengths)
        if table is not None:
            given[f"{name}_block_table"] = table
        if case == {"ori": "sparse", "cmp": "csa"}[name]:
            of_tokens = [lengths[b] for b in sequences]
            given[f"{name}_sparse_indices"] = data.picks(leading, of_tokens, sizes.picks)
    if is_tnd:
        given["cu_seqlens_q"] = data.starts(sizes.tokens)
    if "cmp_kv" in given and sizes.ratio > 1:
        given["cmp_residual_kv"] = data.integers([length % sizes.ratio for length in sizes.rows])
    return given | {
        "softmax_scale": sizes.columns**-0.5,
        "cmp_ratio": sizes.ratio if "cmp_kv" in given else 1,
        "ori_mask_mode": 0 if case == "sparse" else 4,
        "ori_win_left": sizes.window - 1,
        "layout_q": layout_q,
        "layout_kv": layout,
        **changes,
    }


def gradient_arguments(call: Arguments) -> Arguments:
    """The call of npu_sparse_flash_mla_grad that follows a call of npu_sparse_flash_mla."""
    on_cpu = {n: each.cpu() if isinstance(each, Tensor) else each for n, each in call.items()}
    op = torch.ops.custom_pypto.npu_sparse_flash_mla
    out, lse = op(**on_cpu, return_softmax_lse=True)
    generator = torch.Generator().manual_seed(1)
    dout = torch.randn(out.shape, generator=generator, device="cpu").to(out.dtype)
    device = call["q"].device
    given = {"q": call["q"], "dout": dout.to(device), "attn_out": out.to(device)}
    given |= {"softmax_lse": lse.to(device), "cmp_mask_mode": 3, "ori_win_right": 0}
    return given | {name: each for name, each in call.items() if name != "q"}


def _sample(call: Arguments, name: str, larger: Arguments | None = None) -> SampleInput:
    rest = {n: each for n, each in call.items() if n != "q"}
    resized = None if larger is None else _sample(larger, name)
    return SampleInput((call["q"],), rest, name, resized)


LAYOUTS = (("BSND", "BSND"), ("TND", "TND"), ("BSND", "PA_BBND"), ("TND", "PA_BBND"))
CASES = ("window", "csa", "hca", "sparse")
_LAYOUTS_OF_CASES = dict(zip(("csa", "sparse", "window", "hca"), LAYOUTS, strict=True))


def npu_arguments(
    sizes: Sizes, case: str, layout_q: str, layout_kv: str, device: str, **changes: Any
) -> Arguments:
    """A call as CANN's kernels take it, with metadata of its device."""
    sizes = replace(sizes, ratio=128 if case == "hca" else 4)
    given = arguments(sizes, case, layout_q, layout_kv, device, **changes)
    if case == "sparse":
        counts = (given["ori_sparse_indices"] >= 0).sum(-1, dtype=torch.int32)
        listed = given["ori_sparse_indices"].sort(-1, descending=True).values
        given |= {"ori_sparse_indices": listed, "ori_topk_length": counts}
    described = ("cu_", "seqused_", "cmp_r", "ori_m", "ori_w", "layout_", "ori_topk_length")
    given["metadata"] = torch.ops.custom_pypto.npu_sparse_flash_mla_metadata(
        sizes.heads,
        1,
        sizes.columns,
        **{n: each for n, each in given.items() if n.startswith(described)},
        batch_size=len(sizes.tokens),
        max_seqlen_q=max(sizes.tokens),
        max_seqlen_ori_kv=max(sizes.rows),
        max_seqlen_cmp_kv=max(sizes.compressed),
        cmp_topk=sizes.picks if case == "csa" else 0,
        ori_topk=sizes.picks if case == "sparse" else 0,
        cmp_mask_mode=3,
        ori_win_right=0,
        has_cmp_kv="cmp_kv" in given,
    )
    return given


def samples(device: str) -> Iterator[SampleInput]:
    """Inputs of npu_sparse_flash_mla: each case in a layout of its own."""
    if device != "cpu":
        for case, layouts in _LAYOUTS_OF_CASES.items():
            calls = [
                npu_arguments(sizes, case, *layouts, device)
                for sizes in (DEEPSEEK, DEEPSEEK_RESIZED)
            ]
            yield _sample(calls[0], case, calls[1])
        fp16 = replace(DEEPSEEK, dtype=torch.float16)
        call = npu_arguments(fp16, "csa", "TND", "TND", device, return_softmax_lse=True)
        yield _sample(call, "log-sum-exp")
        return
    for case, layouts in _LAYOUTS_OF_CASES.items():
        options: Arguments = {"return_softmax_lse": case in ("csa", "hca")}
        small, larger, fp64 = (
            arguments(sizes, case, *layouts, **options) for sizes in (SMALL, SMALL_RESIZED, FP64)
        )
        yield _sample(small, case, larger)
        yield _sample(fp64 | {"sinks": fp64["sinks"].double()}, f"fp64-{case}")
    for dtype in (torch.float16, torch.float32):
        call = arguments(replace(SMALL, dtype=dtype), return_softmax_lse=True)
        yield _sample(call, str(dtype).removeprefix("torch."))
    yield _sample(arguments(LARGE, "hca", "TND", "PA_BBND", return_softmax_lse=True), "large")
    counts = torch.tensor([[2, 0, 6, 11, 1]] * 3, dtype=torch.int32, device="cpu")
    used = torch.tensor([3, 0, 1], dtype=torch.int32, device="cpu")
    yield _sample(arguments(SMALL, cmp_topk_length=counts[..., None], seqused_q=used), "counted")
    masks: Arguments = {"ori_mask_mode": 3, "cmp_mask_mode": 0, "cmp_residual_kv": None}
    yield _sample(arguments(SMALL, sinks=None, **masks), "causal")
    sides: Arguments = {"ori_win_left": -1, "ori_win_right": 2}
    yield _sample(arguments(SMALL, "hca", "TND", **sides), "both-sides")


def gradient_samples(device: str) -> Iterator[SampleInput]:
    """Inputs of npu_sparse_flash_mla_grad."""

    def call(sizes: Sizes, case: str = "csa", layout: str = "BSND", **changes: Any) -> Arguments:
        return gradient_arguments(arguments(sizes, case, layout, None, device, **changes))

    if device != "cpu":
        for case, ratio in (("window", 4), ("csa", 4), ("hca", 128)):
            given, larger = (
                call(replace(sizes, ratio=ratio), case, "TND")
                for sizes in (DEEPSEEK, DEEPSEEK_RESIZED)
            )
            yield _sample(given, f"{case}-tnd", larger)
        whole: Arguments = {"seqused_ori_kv": None, "seqused_cmp_kv": None}
        yield _sample(call(replace(DEEPSEEK, dtype=torch.float16), **whole), "csa-bsnd-fp16")
        return
    for case, (layout, _) in _LAYOUTS_OF_CASES.items():
        yield _sample(call(SMALL, case, layout), case, call(SMALL_RESIZED, case, layout))
    for dtype in (torch.float16, torch.float32):
        yield _sample(call(replace(SMALL, dtype=dtype)), str(dtype).removeprefix("torch."))
    yield _sample(call(LARGE, "hca", "TND"), "large")
    without = call(SMALL, sinks=None, softmax_scale=24**-0.5)
    yield _sample(without | {"softmax_scale": None}, "no-scale-no-sinks")
    yield _sample(call(FP64), "fp64")


def metadata_samples(device: str) -> Iterator[SampleInput]:
    """Inputs of npu_sparse_flash_mla_metadata."""

    def sample(sizes: Sizes, name: str, resized: SampleInput | None = None) -> SampleInput:
        given = arguments(sizes, "csa", "TND", device=device)
        described = ("cu_", "cmp_r", "ori_m", "ori_w", "layout_")
        options = {n: each for n, each in given.items() if n.startswith(described)}
        options |= {"max_seqlen_q": 4, "cmp_topk": sizes.picks}
        return SampleInput((sizes.heads, 1, sizes.columns), options, name, resized)

    for heads in (64, 128, 1, 8)[: 1 if device == "cpu" else None]:
        small, large = (replace(each, heads=heads) for each in (DEEPSEEK, DEEPSEEK_RESIZED))
        yield sample(small, f"{heads}-heads", sample(large, ""))
    if device == "cpu":  # Without a tensor the op is on an NPU if there is one.
        yield SampleInput((64, 1, 512), {"batch_size": 2, "max_seqlen_q": 1}, "no-tensors")
