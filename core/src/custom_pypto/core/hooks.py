"""The hooks of one plugin. Each plugin has its own manager, so plugins do not interfere."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any, cast

import pluggy
from custom_pypto_contract.errors import did_you_mean
from custom_pypto_plugin import hookspecs
from custom_pypto_plugin.contributions import Autograd, Reference

from custom_pypto.core.errors import LoadError, describe_error

KERNELS = "custom_pypto_kernels"
FAKES = "custom_pypto_fakes"
AUTOGRAD = "custom_pypto_autograd"
CONVERTERS = "custom_pypto_converters"
SAMPLES = "custom_pypto_samples"
REFERENCES = "custom_pypto_references"


class HookError(LoadError):
    """A plugin's hook cannot be called, failed, or returned something else than it must."""


class _Manager(pluggy.PluginManager):
    """pluggy's manager, which otherwise inspects names that cannot be hooks, and is slow."""

    def parse_hookspec_opts(self, module_or_class: Any, name: str) -> Any:
        return super().parse_hookspec_opts(module_or_class, name) if name in _VALUES else None

    def parse_hookimpl_opts(self, plugin: Any, name: str) -> Any:
        return None if name.startswith("__") else super().parse_hookimpl_opts(plugin, name)


class Hooks:
    """The hooks that a plugin's module implements."""

    def __init__(self, module: ModuleType, ops: Sequence[str]) -> None:
        """Take the implementations that `module` defines; `ops` are the names of its ops.

        Raises:
            HookError: one of them is no hook of core, has another signature, or lacks the
                decorator.
        """
        self._ops = ops
        self._manager = _Manager(hookspecs.PROJECT)
        self._manager.add_hookspecs(hookspecs)
        self._names = sorted(_VALUES)
        self._check_decorators(module)
        try:
            self._manager.register(module, module.__name__)
            self._manager.check_pending()
        except pluggy.PluginValidationError as error:
            raise HookError(f"{error}{self._hint()}") from error

    def call(self, hook: str, **arguments: object) -> Mapping[str, Any]:
        """Return what the plugin contributes by `hook`, by op; empty if it does not implement it.

        Raises:
            HookError: the implementation raised, or its result is not a mapping from names of ops
                to the hook's type.
        """
        if not self.implements(hook):
            return {}
        try:
            results = getattr(self._manager.hook, hook)(**arguments)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise HookError(f"{hook} raised {describe_error(error)}") from error
        # pluggy leaves a result of None out.
        result: Any = results[0] if results else None
        self._check_result(hook, result)
        return cast("Mapping[str, Any]", result)

    def implements(self, hook: str) -> bool:
        """Return whether the plugin implements `hook`."""
        return bool(getattr(self._manager.hook, hook).get_hookimpls())

    def _check_decorators(self, module: ModuleType) -> None:
        for hook in self._names:
            function = vars(module).get(hook)
            if (
                inspect.isroutine(function)
                and self._manager.parse_hookimpl_opts(module, hook) is None
            ):
                raise HookError(
                    f"it defines {hook!r} without the decorator that makes it a hook;"
                    " write @hookimpl (from custom_pypto_plugin) above it"
                )

    def _hint(self) -> str:
        unknown = [name for name in vars(self._manager.hook) if name not in self._names]
        for name in (name for name in unknown if not name.startswith("_")):
            return did_you_mean(name, self._names) or f"; there are {_quote(self._names)}"
        return ""

    def _check_result(self, hook: str, result: object) -> None:
        what, is_right = _VALUES[hook]
        if not isinstance(result, Mapping):
            raise HookError(
                f"{hook} must return a mapping from op names to {what}s, got"
                f" {_format_value(result)}"
            )
        for op, value in result.items():
            if op not in self._ops:
                hint = did_you_mean(str(op), self._ops) or ";"
                raise HookError(
                    f"{hook} names {op!r}, which is no op of this plugin{hint} its ops are"
                    f" {_quote(self._ops)}"
                )
            if not is_right(value):
                raise HookError(
                    f"{hook}: the value of {op!r} must be a {what}, got {_format_value(value)}"
                )


def _is_kernels(value: object) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(key, str) and callable(kernel) for key, kernel in value.items()
    )


_VALUES: Mapping[str, tuple[str, Callable[[object], bool]]] = {
    KERNELS: ("mapping from dispatch keys to callable", _is_kernels),
    FAKES: ("callable", callable),
    AUTOGRAD: (
        "custom_pypto_plugin.Autograd with a callable backward",
        lambda value: isinstance(value, Autograd) and callable(value.backward),
    ),
    CONVERTERS: ("callable", callable),
    SAMPLES: ("callable", callable),
    REFERENCES: (
        "custom_pypto_plugin.Reference with a callable function",
        lambda value: isinstance(value, Reference) and callable(value.function),
    ),
}


def _quote(names: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in names)


def _format_value(value: object) -> str:
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= 60 else f'{text[:57]}...'}"
