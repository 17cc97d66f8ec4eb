"""Records of plugins as custom_pypto.core gives them, for the tests of the command line."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType, SimpleNamespace

ADD = SimpleNamespace(
    name="add_custom",
    version="0.1.0",
    distribution="custom-pypto-add-custom",
    status="loaded",
    reason="",
    ops=(
        SimpleNamespace(
            name="add_custom",
            schema="add_custom(Tensor self, Tensor other) -> Tensor",
            dispatch_keys=("CPU", "PrivateUse1"),
        ),
        SimpleNamespace(
            name="add_custom_backward",
            schema="add_custom_backward(Tensor self) -> (Tensor, Tensor)",
            dispatch_keys=("CPU",),
        ),
    ),
    library=Path("/site/custom_pypto_add_custom/lib/libcustom_pypto_add_custom.so"),
    opp=None,
    load_time=0.25,
)

BROKEN = SimpleNamespace(
    name="broken",
    version="",
    distribution="custom-pypto-broken",
    status="quarantined",
    reason="its library is missing; reinstall it",
    ops=(),
    library=None,
    opp=None,
    load_time=0.0,
)

ADD_KERNEL = SimpleNamespace(
    op="add_custom",
    symbols=("aclnnAddCustom", "aclnnAdd"),
    symbol="aclnnAdd",
    library=Path("/cann/lib64/libopapi.so"),
    origin="CANN",
    searched=(),
)

MISSING_KERNEL = SimpleNamespace(
    op="",
    symbols=("aclnnOther",),
    symbol="",
    library=None,
    origin="",
    searched=("CANN: libopapi.so: not there", "a custom opp package: ASCEND_OPP_PATH is not set"),
)


def core_with(*records: SimpleNamespace, kernels: tuple[SimpleNamespace, ...] = ()) -> ModuleType:
    """Return a module like custom_pypto.core with plugins that all have these NPU kernels."""
    core = ModuleType("custom_pypto.core")
    core.plugins = lambda: records  # type: ignore[attr-defined]
    core.PluginError = RuntimeError  # type: ignore[attr-defined]
    core.cpu_isa = lambda plugin: "avx2"  # type: ignore[attr-defined]
    core.npu_kernels = lambda plugin: kernels  # type: ignore[attr-defined]
    return core
