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


manager = pluggy.PluginManager(hookspecs.PROJECT)
"""The modules of the loaded plugins, under the names of the plugins."""
manager.add_hookspecs(hookspecs)


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
        self._plugin, self._module, self._ops = plugin, module, ops
        _check_decorators(module)
        try:
            manager.register(module, plugin)
            self._check_pending()
        except pluggy.PluginValidationError as error:
            self.unregister()
            raise HookError(str(error)) from error

    def _check_pending(self) -> None:
        # The manager's own check_pending also refuses hooks of other plugins.
        for caller in manager.get_hookcallers(self._module) or ():
            if not caller.has_spec() and not all(each.optionalhook for each in self._own(caller)):
                hint = did_you_mean(caller.name, _VALUES) or ";"
                text = f"unknown hook {caller.name!r}{hint} the hooks are {_quote(sorted(_VALUES))}"
                raise pluggy.PluginValidationError(self._module, text)

    def _own(self, caller: pluggy.HookCaller) -> list[pluggy.HookImpl]:
        return [each for each in caller.get_hookimpls() if each.plugin is self._module]

    def unregister(self) -> None:
        """Remove the module from the manager."""
        manager.unregister(name=self._plugin)

    def implements(self, hook: str) -> bool:
        """Return whether the plugin implements `hook`."""
        return bool(self._own(getattr(manager.hook, hook)))

    def call(self, hook: str, **arguments: object) -> Mapping[str, Any]:
        """Return what the plugin contributes by `hook`, by op; empty if it does not implement it.

        Raises:
            HookError: the implementation raised, or its result is not a mapping from names of ops
                to the hook's type.
        """
        if not self.implements(hook):
            return {}
        try:
            others = (each for each in manager.get_plugins() if each is not self._module)
            result: Any = manager.subset_hook_caller(hook, others)(**arguments)
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
