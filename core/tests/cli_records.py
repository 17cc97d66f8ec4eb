"""Records of plugins as custom_pypto.core gives them, for the tests of the command line."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

from custom_pypto.core import NpuKernelRecord, OpRecord, PluginRecord
from custom_pypto_contract import contract_data
from custom_pypto_contract.manifest import make_op
from custom_pypto_discovery.installed_plugin import Status

ADD = PluginRecord(
    name="add_custom",
    version="0.1.0",
    distribution="custom-pypto-add-custom",
    status=Status.LOADED,
    reason="",
    ops=(
        OpRecord(
            name="add_custom",
            schema="add_custom(Tensor self, Tensor other) -> Tensor",
            plugin="add_custom",
            dispatch_keys=("CPU", "PrivateUse1"),
        ),
        OpRecord(
            name="add_custom_backward",
            schema="add_custom_backward(Tensor self) -> (Tensor, Tensor)",
            plugin="add_custom",
            dispatch_keys=("CPU",),
        ),
    ),
    library=Path("/site/custom_pypto_add_custom/lib/libcustom_pypto_add_custom.so"),
    opp=None,
    load_time=0.25,
    leftovers=(),
)

BROKEN = PluginRecord(
    name="broken",
    version="",
    distribution="custom-pypto-broken",
    status=Status.REJECTED,
    reason="its library is missing; reinstall it",
    ops=(),
    library=None,
    opp=None,
    load_time=0.0,
    leftovers=(),
)

ADD_KERNEL = NpuKernelRecord(
    op="add_custom",
    symbols=("aclnnAddCustom", "aclnnAdd"),
    symbol="aclnnAdd",
    library=Path("/cann/lib64/libopapi.so"),
    origin="CANN",
    searched=(),
)

MISSING_KERNEL = NpuKernelRecord(
    op="",
    symbols=("aclnnOther",),
    symbol="",
    library=None,
    origin="",
    searched=("CANN: libopapi.so: not there", "a custom opp package: ASCEND_OPP_PATH is not set"),
)


def core_with(*records: PluginRecord, kernels: tuple[NpuKernelRecord, ...] = ()) -> ModuleType:
    """Return a module like custom_pypto.core with plugins that all have these NPU kernels."""
    core = ModuleType("custom_pypto.core")
    core.plugins = lambda: records  # type: ignore[attr-defined]
    core.PluginError = RuntimeError  # type: ignore[attr-defined]
    core.cpu_isa = lambda plugin: "avx2"  # type: ignore[attr-defined]
    core.npu_kernels = lambda plugin: kernels  # type: ignore[attr-defined]
    schemas = {op.name: op.schema for record in records for op in record.ops}
    core.contract = lambda op: contract_data.read_contract(  # type: ignore[attr-defined]
        make_op(schemas[op]).data
    )
    return core
