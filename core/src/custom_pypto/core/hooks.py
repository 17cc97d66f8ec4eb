"""The hooks of the plugins: what a plugin's module contributes, by pluggy."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any, cast

import pluggy
from custom_pypto_contract.errors import did_you_mean
from custom_pypto_plugin import Autograd, Reference, hookspecs

from custom_pypto.core.errors import LoadError, describe_error

KERNELS = "custom_pypto_kernels"
FAKES = "custom_pypto_fakes"
AUTOGRAD = "custom_pypto_autograd"
CONVERTERS = "custom_pypto_converters"
SAMPLES = "custom_pypto_samples"
REFERENCES = "custom_pypto_references"


def _make_manager() -> pluggy.PluginManager:
    made = pluggy.PluginManager(hookspecs.PROJECT)
    made.add_hookspecs(hookspecs)
    return made


manager = _make_manager()
"""The modules of the loaded plugins, under the names of the plugins."""


class HookError(LoadError):
    """A plugin's hook cannot be called, failed, or returned something else than it must."""


class Hooks:
    """The hooks that one plugin's module implements."""

    def __init__(self, plugin: str, module: ModuleType, ops: Sequence[str]) -> None:
        """Register `module` as `plugin`; `ops` are the names of its ops.

        Raises:
            HookError: one of its hooks is no hook of core, has another signature, or lacks the
                decorator.
        """
        self._plugin, self._ops = plugin, ops
        _check_decorators(module)
        # Anybody may register anything in the process's manager: it takes no part in calls.
        self._alone = _make_manager()
        try:
            self._alone.register(module, plugin)
            self._alone.check_pending()
        except pluggy.PluginValidationError as error:
            callers = self._alone.get_hookcallers(module) or ()
            unknown = [each.name for each in callers if not each.has_spec()]
            hint = "".join(did_you_mean(name, _VALUES) for name in unknown) or ";"
            raise HookError(f"{error}{hint} the hooks are {_quote(sorted(_VALUES))}") from error
        manager.register(module, plugin)

    def unregister(self) -> None:
        """Remove the module from the managers."""
        for each in (self._alone, manager):
            each.unregister(name=self._plugin)

    def implements(self, hook: str) -> bool:
        """Return whether the plugin implements `hook`."""
        return bool(getattr(self._alone.hook, hook).get_hookimpls())

    def call(self, hook: str, **arguments: object) -> Mapping[str, Any]:
        """Return what the plugin contributes by `hook`, by op; empty if it does not implement it.

        Raises:
            HookError: the implementation raised, or its result is not a mapping from names of ops
                to the hook's type.
        """
        if not self.implements(hook):
            return {}
        try:
            result: Any = getattr(self._alone.hook, hook)(**arguments)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise HookError(f"{hook} raised {describe_error(error)}") from error
        self._check_result(hook, result)
        return cast("Mapping[str, Any]", result)

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
                    f"{hook}: {op!r} is not an op of this plugin{hint} its ops are"
                    f" {_quote(self._ops)}"
                )
            if not is_right(value):
                raise HookError(
                    f"{hook}: the value of {op!r} must be a {what}, got {_format_value(value)}"
                )


def _check_decorators(module: ModuleType) -> None:
    for hook in sorted(_VALUES):
        function = vars(module).get(hook)
        if inspect.isroutine(function) and manager.parse_hookimpl_opts(module, hook) is None:
            raise HookError(
                f"it defines {hook!r} without the decorator that makes it a hook;"
                " write @hookimpl (from custom_pypto_plugin) above it"
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
