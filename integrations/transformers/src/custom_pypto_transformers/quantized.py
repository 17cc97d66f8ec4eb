"""Linear layers of quantised checkpoints on npu_weight_quant_batchmatmul and npu_quant_matmul.

The packages that load such checkpoints are no dependency: their modules are known by names.
"""

from __future__ import annotations

from typing import Any, NamedTuple, NoReturn

import torch
from custom_pypto_quant_matmul.ops import (
    BFLOAT16,
    FLOAT16,
    INT32,
    npu_dynamic_quant,
    npu_quant_matmul,
)
from custom_pypto_weight_quant_matmul import (
    pack_int4,
    to_signed,
    unpack_awq,
    unpack_int4,
    unpack_unsigned,
)
from custom_pypto_weight_quant_matmul.ops import npu_weight_quant_batchmatmul
from torch import Tensor, nn
from torch.nn import functional

from .fallback import DTYPES, has_hooks, is_for_product, is_torch_fast, warn_once

# gptqmodel's classes whose buffers are those of the checkpoint until the first forward pass.
_GPTQ = ("TorchLinear", "TorchAtenLinear", "TorchFusedLinear", "TorchCpuAvx512Linear")
_AWQ = ("AwqTorchLinear", "TorchAtenAwqLinear", "TorchFusedAwqLinear", "TorchCpuAvx512AwqLinear")
_BITS = (4, 8)
_MULTIPLE = 32
# More rows take less time as dequantised weights where torch multiplies fast.
_MOST_ROWS = 256
# Layers whose weights attention and indexers read themselves.
_READ = ("kv_b_proj", "weights_proj")


class _NotServedError(Exception):
    """Says why a layer keeps its own code."""


class _Weights(NamedTuple):
    numbers: Tensor  # int32 words [N, K * bits / 32], each number two's complement
    scales: Tensor  # [G, N], or [1, 1]
    zeros: Tensor | None  # [G, N], on the scale of the numbers
    bits: int
    group_size: int | None  # None or -1: a scale for each column, or one
    has_int8_rows: bool = False  # Are activations quantised, too?
    row_scale: Tensor | None = None  # of all rows; None: each has its own


class QuantizedLinear(nn.Module):
    """A linear layer of int8 or int4 weights: (numbers + offsets) * scales."""

    numbers: Tensor  # int8 [N, K], or int32 [N, K / 8], which packs int4
    scales: Tensor  # [G, N], or [1, 1]
    offsets: Tensor | None  # as scales; None if all are 0
    bias: Tensor | None

    def __init__(self, weights: _Weights, bias: Tensor | None) -> None:
        super().__init__()
        groups, self.out_features = len(weights.scales), len(weights.numbers)
        self.in_features = weights.numbers.shape[1] * 32 // weights.bits
        self.group_size = self.in_features // groups if groups > 1 else 0
        numbers = weights.numbers.contiguous()
        zeros = weights.zeros if weights.zeros is not None and weights.zeros.any() else None
        buffers = {
            "numbers": numbers if weights.bits == 4 else numbers.view(torch.int8),
            "scales": weights.scales.contiguous(),
            "offsets": None if zeros is None else -zeros.to(weights.scales.dtype),
            "bias": bias,
        }
        for name, each in buffers.items():
            self.register_buffer(name, None if each is None else each.detach())

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        """Compute [*, N] from [*, K]."""
        bias = None if self.bias is None else self.bias.to(input.dtype)
        if not self._is_for_op(input):
            return functional.linear(input, self.weight.to(input.dtype), bias)
        return self._multiply(input, bias)

    def _multiply(self, x: Tensor, bias: Tensor | None) -> Tensor:
        result: Tensor = npu_weight_quant_batchmatmul(
            x,
            self.numbers.t(),
            self.scales.to(x.dtype),
            None if self.offsets is None else self.offsets.to(x.dtype),
            bias=bias,
            antiquant_group_size=self.group_size,
        )
        return result

    @property
    def weight(self) -> Tensor:
        """The weights [N, K] that the numbers stand for, made at each call."""
        is_packed = self.numbers.dtype == torch.int32
        numbers = unpack_int4(self.numbers) if is_packed else self.numbers
        groups = numbers.view(len(numbers), len(self.scales), -1).to(self.scales.dtype)
        if self.offsets is not None:
            groups = groups + self.offsets.t().unsqueeze(-1)
        return (groups * self.scales.t().unsqueeze(-1)).flatten(1)

    def _is_for_op(self, x: Tensor) -> bool:
        return (
            is_for_product(x, x)
            and self.numbers.device.type == "cpu"
            and not (torch.is_grad_enabled() and x.requires_grad)
            and not self._is_for_torch(x)
        )

    def _is_for_torch(self, x: Tensor) -> bool:
        are_many = not torch.compiler.is_compiling() and x.numel() > _MOST_ROWS * self.in_features
        return are_many and is_torch_fast(x.dtype)

    def _save_to_state_dict(self, *_: Any, **__: Any) -> NoReturn:
        raise NotImplementedError(
            "use_linear has laid out quantised weights anew, which no checkpoint holds: save the"
            " model before use_linear"
        )


class QuantizedRowsLinear(QuantizedLinear):
    """The same, with rows of int8, too (W8A8).

    A row is divided by its largest magnitude / 127, or by the checkpoint's scale. Where the ops do
    not run, as for gradients, rows stay what they are.
    """

    row_scale: Tensor | None

    def __init__(self, weights: _Weights, bias: Tensor | None) -> None:
        super().__init__(weights._replace(scales=weights.scales.float()), bias)
        self.register_buffer("row_scale", weights.row_scale)

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        before = self.scales, self.row_scale
        applied = super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        # The op takes no scales of fp16, in which small ones are zero.
        if not self.scales.is_meta and not before[0].is_meta:
            self.scales = before[0].to(self.scales.device)
            self.row_scale = None if before[1] is None else before[1].to(self.scales.device)
        return applied

    def _is_for_torch(self, _: Tensor) -> bool:
        return False  # The op multiplies many rows fast itself.

    def _multiply(self, x: Tensor, bias: Tensor | None) -> Tensor:
        rows = x.flatten(0, -2) if x.dim() > 1 else x.unsqueeze(0)
        if self.row_scale is None:
            numbers, scales = npu_dynamic_quant(rows)
        else:
            numbers = (rows / self.row_scale).clamp(-128, 127).round().to(torch.int8)
            scales = self.row_scale.float().expand(rows.shape[0])
        given = numbers, self.numbers.t(), self.scales[0]
        if x.dtype == torch.float32:
            sums = npu_quant_matmul(*given, output_dtype=INT32)
            result: Tensor = sums * self.scales * scales.unsqueeze(-1)
            result = result if bias is None else result + bias
        else:
            dtype = BFLOAT16 if x.dtype == torch.bfloat16 else FLOAT16
            result = npu_quant_matmul(*given, pertoken_scale=scales, bias=bias, output_dtype=dtype)
        return result.view(*x.shape[:-1], self.out_features)


def replace_quantized(model: nn.Module) -> None:
    """Replace the quantised linear layers in a model; those that the op does not serve stay."""
    replaced: dict[nn.Module, QuantizedLinear | None] = {}
    for parent in list(model.modules()):
        for name, module in parent.named_children():
            if module not in replaced:
                replaced[module] = _replacement(module)
            if (ours := replaced[module]) is not None:
                is_read = name in _READ and ours.bias is None
                setattr(parent, name, _dequantised(ours, model) if is_read else ours)


def _dequantised(layer: QuantizedLinear, model: Any) -> nn.Linear:
    made = nn.Linear(layer.in_features, layer.out_features, False, "meta")
    weight = layer.weight.to(getattr(model, "dtype", layer.scales.dtype))
    made.weight = nn.Parameter(weight, requires_grad=False)
    return made.train(layer.training)


def _replacement(module: Any) -> QuantizedLinear | None:
    kind = type(module).__name__
    if isinstance(module, nn.Linear) and hasattr(module, "quantization_scheme"):
        read = _of_compressed_tensors
        # Its own forward is no hook.
        hooks = len(module._forward_hooks) + len(module._forward_pre_hooks)
        is_hooked = hooks > 0 or hasattr(module, "_hf_hook")
    elif kind in _GPTQ + _AWQ and isinstance(getattr(module, "qweight", None), Tensor):
        read, is_hooked = (_of_gptq if kind in _GPTQ else _of_awq), has_hooks(module)
    else:
        return None
    try:
        if is_hooked:
            raise _NotServedError(f"a {kind} has hooks, such as those of offloading")
        if (weights := read(module)) is None:
            return None
        _check(module, weights)
        ours = QuantizedRowsLinear if weights.has_int8_rows else QuantizedLinear
        return ours(weights, module.bias).train(module.training)
    except _NotServedError as error:
        reason = str(error)
    except (AttributeError, RuntimeError, TypeError) as error:
        reason = f"a {kind} is another than the tested releases have ({error})"
    warn_once(reason, "use_linear leaves quantised layers to their own code")
    return None


def _check(module: Any, weights: _Weights) -> None:
    rows, depth = module.out_features, module.in_features
    groups, size = weights.scales.shape[0], weights.group_size
    _refuse(weights.numbers.device.type != "cpu", "quantised weights are not on a CPU")
    _refuse(weights.scales.dtype not in DTYPES, f"scales are {weights.scales.dtype}")
    _refuse(depth * weights.bits % 32 != 0, f"in_features is {depth}, no multiple of an int32")
    _refuse(
        groups > 1 and (groups * (size or 0) != depth or depth // groups % _MULTIPLE != 0),
        f"groups of {size}; the op has multiples of {_MULTIPLE} that divide in_features here",
    )
    if weights.numbers.shape != (rows, depth * weights.bits // 32) or (
        weights.scales.shape not in ((groups, rows), (1, 1))
        or (weights.zeros is not None and weights.zeros.shape != weights.scales.shape)
    ):
        raise TypeError("the sizes of its buffers")


def _refuse(condition: bool, reason: str) -> None:
    if condition:
        raise _NotServedError(reason)


def _of_compressed_tensors(module: Any) -> _Weights | None:
    packed, weight = getattr(module, "weight_packed", None), getattr(module, "weight", None)
    if packed is None and (weight is None or weight.dtype in DTYPES):
        return None  # It is dequantised.
    scheme, arguments = module.quantization_scheme, module.quantization_scheme.weights
    bits = arguments.num_bits
    has_own = type(module).forward is not nn.Linear.forward
    _refuse(has_own, f"a {type(module).__name__} has a forward of its own")
    _refuse(scheme.output_activations is not None, "results are quantised")
    _refuse(arguments.type != "int" or bits not in _BITS, f"weights are {arguments.type}{bits}")
    strategy = arguments.strategy
    _refuse(strategy not in ("channel", "group", "tensor"), f"scales by {strategy}")
    _refuse(hasattr(module, "weight_g_idx"), "weights in groups of an order of activations")
    zeros = getattr(module, "weight_zero_point", None)
    if packed is not None:
        numbers = to_signed(packed, bits)
        if zeros is not None:
            # Packed along N.
            zeros = unpack_unsigned(zeros.t(), bits)[:, : module.out_features]
    else:
        _refuse(bits != 8, "weights of int4 in int8")
        _refuse(module.weight.shape[1] % 4 != 0, "rows of int8 do not fill int32 numbers")
        numbers = module.weight.contiguous().view(torch.int32)
        zeros = None if zeros is None else zeros.reshape(len(zeros), -1).t()
    scales = module.weight_scale
    scales = scales.reshape(len(scales), -1).t()
    weights = _Weights(numbers, scales, zeros, bits, arguments.group_size)
    if (rows := scheme.input_activations) is None:
        return weights
    _refuse(rows.type != "int" or rows.num_bits != 8, f"activations are {rows.type}{rows.num_bits}")
    _refuse(not rows.symmetric, "activations have zero points")
    has_form = (rows.strategy, rows.dynamic) in (("token", True), ("tensor", False))
    _refuse(not has_form, f"activations have scales by {rows.strategy}, dynamic={rows.dynamic}")
    is_simple = bits == 8 and len(scales) == 1 and (zeros is None or not zeros.any())
    _refuse(
        not is_simple, "activations are quantised beside weights of int4, groups or zero points"
    )
    return weights._replace(
        has_int8_rows=True, row_scale=None if rows.dynamic else module.input_scale
    )


def _of_gptq(module: Any) -> _Weights:
    bits = _bits_of_gptqmodel(module)
    depth, groups = module.in_features, module.scales.shape[0]
    of_group = torch.arange(depth, device=module.g_idx.device) // -(-depth // groups)
    _refuse(not module.g_idx.equal(of_group.int()), "g_idx is an order of activations (desc_act)")
    # Packed along K. The first version of the format has the zeros less 1.
    half = 2 ** (bits - 1)
    zeros = unpack_unsigned(module.qzeros, bits).to(torch.int16) + (module.qzero_format() == 1)
    zeros = (zeros + half) % 2**bits - half
    words = to_signed(module.qweight.t(), bits)
    return _Weights(words, module.scales, zeros, bits, depth // groups)


def _of_awq(module: Any) -> _Weights:
    bits = _bits_of_gptqmodel(module)
    _refuse(bits != 4, f"AWQ of {bits} bits")
    # Packed along N.
    numbers, zeros = map(unpack_awq, (module.qweight, module.qzeros))
    return _Weights(pack_int4(numbers.t().contiguous()), module.scales, zeros, 4, module.group_size)


def _bits_of_gptqmodel(module: Any) -> int:
    bits: int = module.bits
    _refuse(bits not in _BITS, f"weights of {bits} bits")
    _refuse(module.adapter is not None, "an adapter")
    _refuse(module.online_full_had or module.online_partial_had, "weights are rotated")
    has_run = getattr(module, "_cpu_transformed", False) or (
        getattr(module, "linear_mode", None) is not None
    )
    _refuse(has_run, "the model has run, and its weights have changed: call use_linear first")
    return bits
