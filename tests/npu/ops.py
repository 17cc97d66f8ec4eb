"""The ops that are tested on NPUs: every op of the installed plugins with a kernel for them."""

from pathlib import Path

import custom_pypto.core as core

_KEYS = {"PrivateUse1", "CompositeExplicitAutograd"}
_OPP_PACKAGES = "".join(
    path.read_text("utf-8")
    for path in Path(__file__).parents[2].glob("plugins/*/tests/npu/custom.cpp")
)

OPS = tuple(op.name for op in core.ops() if not _KEYS.isdisjoint(op.dispatch_keys))
_SYMBOLS = {
    (kernel.op, symbol)
    for plugin in core.plugins()
    for kernel in core.npu_kernels(plugin.name)
    for symbol in kernel.symbols
}
_LAUNCHING = {op for op, _ in _SYMBOLS}

DIRECT = {op for op, symbol in _SYMBOLS if not symbol.startswith("aclnn")}
"""Ops for which an opp package has a kernel that is launched directly, without phase 1."""
COMPOSED = {*OPS} - _LAUNCHING | {"npu_mla_prolog"}
"""Ops that call torch's own for these samples, and launch nothing themselves."""
WITHOUT_OPERATOR = {
    "npu_mhc_pre",
    "npu_mhc_pre_backward",
    "npu_mhc_sinkhorn",
    "npu_mhc_sinkhorn_backward",
    "npu_compressor",
    "npu_compressor_backward",
    "npu_compressor_train",
    "npu_sparse_flash_mla_metadata",
}
"""Ops that torchair's graph engine cannot have: CANN has no operator of this form. The graphs that
replay eager kernels have them."""
KERNELS_OF_OPS = [
    (kernels, op)
    for kernels in ("custom", "stock")
    for op in OPS
    if kernels == "stock" or any(each == op and name in _OPP_PACKAGES for each, name in _SYMBOLS)
]
"""For each op, the machines whose kernels differ for it; one machine after the other."""
IN_GRAPHS = [each for each in KERNELS_OF_OPS if each[1] not in WITHOUT_OPERATOR]
ONE_OF_KERNELS_OF_OPS = [
    (kernels, op)
    for kernels, op in KERNELS_OF_OPS
    if kernels == "custom" or ("custom", op) not in KERNELS_OF_OPS
]
"""One machine for each op, the one that takes most samples: for what quick tests check with every
kernel, and a slow test only in more detail or by another way."""
