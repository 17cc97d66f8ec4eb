"""The public functions of core: what is installed, and what it provides."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import torch
from custom_pypto_contract.errors import did_you_mean
from custom_pypto_plugin import Reference, SampleInput

from custom_pypto.core import hooks, kernel_queries
from custom_pypto.core.contracts import bind_arguments
from custom_pypto.core.errors import PluginError
from custom_pypto.core.hooks import HookError
from custom_pypto.core.kernel_queries import NpuKernelRecord
from custom_pypto.core.loader import start
from custom_pypto.core.records import OpRecord, PluginRecord

if TYPE_CHECKING:
    from custom_pypto_contract.contract import OpContract


def load_new() -> None:
    """Load the plugins that were installed, or put on `sys.path`, after core was imported.

    A plugin that loaded or failed before stays as it is, also if pip replaced or removed it.

    Raises:
        PluginError: one cannot be loaded, and CUSTOM_PYPTO_STRICT is set; or a plugin that is
            loading calls this.
    """
    start().load_new()


def plugins() -> tuple[PluginRecord, ...]:
    """Return every installed plugin: the loaded in loading order, then the others by name."""
    loader = start()
    loader.complete()
    loaded = loader.loaded()
    others = (plugin for plugin in loader.plugins if plugin not in loaded)
    ordered = (*loaded, *sorted(others, key=lambda plugin: plugin.name))
    return tuple(plugin.record() for plugin in ordered)


def ops() -> tuple[OpRecord, ...]:
    """Return the ops of the loaded plugins, by name."""
    loader = start()
    loader.complete()
    records = (op for plugin in loader.loaded() for op in plugin.record().ops)
    return tuple(sorted(records, key=lambda op: op.name))


def cpu_isa(plugin: str) -> str | None:
    """Return the instruction set that the CPU kernels of a loaded plugin use.

    None if the plugin has no library, or the library does not report one. The names are those that
    CUSTOM_PYPTO_CPU_ISA can force.

    Raises:
        LookupError: no plugin of that name is loaded.
        PluginError: CUSTOM_PYPTO_CPU_ISA names one that the machine or the plugin lacks.
    """
    library = _find_library(plugin)
    return None if library is None else kernel_queries.query_cpu_isa(library)


def npu_kernels(plugin: str) -> tuple[NpuKernelRecord, ...]:
    """Return which NPU kernels the ops of a loaded plugin use, or would use, on this machine.

    Searches as the ops do at their first call on an NPU, and loads the libraries it finds; needs
    no NPU and no torch_npu.

    Raises:
        LookupError: no plugin of that name is loaded.
        PluginError: the plugin's library cannot report it.
    """
    library = _find_library(plugin)
    if library is None:
        return ()
    # Imported here: without this function no header is read.
    from custom_pypto.core.kernel_headers import find_kernels

    return find_kernels(library)


def samples(op: str, device: str = "cpu") -> tuple[SampleInput, ...]:
    """Return the sample inputs of `op` on `device`; empty when its plugin gives none.

    `op` is the name in an `OpRecord`, such as ``"add_custom"``.

    Raises:
        LookupError: no loaded plugin provides `op`.
        PluginError: the plugin's hook failed or returned something else than it must.
    """
    make = _find_contribution(op, hooks.SAMPLES)
    made = () if make is None else tuple(make(device))
    for sample in made:
        if not isinstance(sample, SampleInput):
            raise PluginError(
                f"{op}: its samples must be custom_pypto_plugin.SampleInput, got"
                f" {type(sample).__name__}"
            )
    return made


def reference(op: str) -> Reference | None:
    """Return the reference implementation of `op`; None when its plugin gives none.

    Raises:
        LookupError: no loaded plugin provides `op`.
        PluginError: the plugin's hook failed or returned something else than it must.
    """
    found: Reference | None = _find_contribution(op, hooks.REFERENCES)
    if found is not None:
        return found
    definition = compile_definition(contract(op))
    return None if definition is None else Reference(definition)


def contract(op: str) -> OpContract:
    """Return the contract of `op`: what ops.toml of its plugin says of it; docs/contract.md.

    Raises:
        LookupError: no loaded plugin provides `op`.
    """
    return start().contract(op)


def compile_definition(op: OpContract) -> Callable[..., Any] | None:
    """Return the op as its contract defines it in PyTorch; None when it does not.

    Raises:
        PluginError: it names what torch does not have.
    """
    if not op.definition:
        return None
    for node in ast.walk(ast.parse(op.definition, mode="eval")):
        _find_in_torch(op, node)
    code = compile(op.definition, f"<definition of {op.name} in ops.toml>", "eval")

    def function(*args: Any, **kwargs: Any) -> Any:
        # All are globals: a comprehension or a generator inside does not see eval's locals.
        value = eval(code, {"torch": torch, **bind_arguments(op, args, kwargs)})
        return value if op.schema.returns else None

    return function


def _find_in_torch(op: OpContract, node: ast.AST) -> Any:
    """Return what ``torch.a.b`` is, or None where a node is not of that form."""
    if isinstance(node, ast.Name):
        return torch if node.id == "torch" else None
    if not isinstance(node, ast.Attribute):
        return None
    owner = _find_in_torch(op, node.value)
    # torch.ops has what plugins register, and only modules are looked into.
    if owner is torch.ops or not isinstance(owner, ModuleType):
        return None
    if not hasattr(owner, node.attr):
        raise PluginError(
            f"{op.name}: its definition in ops.toml names {ast.unparse(node)}, which torch"
            f" {torch.__version__} does not have{did_you_mean(node.attr, dir(owner))}"
        )
    return getattr(owner, node.attr)


def _find_library(plugin: str) -> Path | None:
    for each in start().loaded():
        if each.name == plugin:
            return each.library
    raise LookupError(f"no plugin {plugin!r} is loaded; `custom-pypto list` shows which are")


def _find_contribution(op: str, hook: str) -> Any:
    plugin = start().find_owner(op)
    try:
        return plugin.contribution(hook).get(op)
    except HookError as error:
        raise PluginError(f"{plugin.title}: {error}") from error
