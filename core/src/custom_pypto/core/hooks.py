"""Checks and calls the hooks of one plugin at a time, so that no plugin disturbs another."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any

import pluggy

from custom_pypto.core import hookspecs
from custom_pypto.core.contributions import Autograd, Reference
from custom_pypto.core.errors import LoadError, described

FAKES = "custom_pypto_fakes"
AUTOGRAD = "custom_pypto_autograd"
CONVERTERS = "custom_pypto_converters"
SAMPLES = "custom_pypto_samples"
REFERENCES = "custom_pypto_references"


class HookError(LoadError):
    """A plugin's hook cannot be called, failed, or returned something else than it must."""


class Hooks:
    """The hooks that plugins implement; plugins are told apart by name."""

    def __init__(self) -> None:
        """Know the hooks of `hookspecs` and no plugin."""
        self._manager = pluggy.PluginManager(hookspecs.PROJECT)
        self._manager.add_hookspecs(hookspecs)
        self._names = sorted(
            name
            for name in vars(hookspecs)
            if self._manager.parse_hookspec_opts(hookspecs, name) is not None
        )

    def add(self, plugin: str, module: ModuleType) -> None:
        """Take the hook implementations that `module` defines.

        Raises:
            HookError: one of them is no hook of core, or cannot be called as the hook is; then none
                is taken.
        """
        for attribute, options in self._implementations(module):
            self._check(attribute, getattr(module, attribute), options)
        self._check_unmarked(module)
        try:
            self._manager.register(module, plugin)
        except (pluggy.PluginValidationError, ValueError) as error:
            # pluggy 1.6 leaves what it refused half registered.
            self.remove(plugin)
            raise HookError(str(error)) from error

    def remove(self, plugin: str) -> None:
        """Forget the hook implementations of `plugin`; harmless when there are none."""
        if self._manager.has_plugin(plugin):
            self._manager.unregister(name=plugin)

    def call(self, plugin: str, hook: str, ops: Sequence[str]) -> Mapping[str, Any]:
        """Return what `plugin` contributes by `hook`, by op; empty when it does not implement it.

        `ops` are the names of the plugin's ops.

        Raises:
            HookError: the implementation raised, or its result is not a mapping from these names to
                the hook's type.
        """
        for implementation in getattr(self._manager.hook, hook).get_hookimpls():
            if implementation.plugin_name == plugin:
                return _checked(hook, _result(hook, implementation.function), ops)
        return {}

    def implements(self, plugin: str, hook: str) -> bool:
        """Return whether `plugin` implements `hook`."""
        implementations = getattr(self._manager.hook, hook).get_hookimpls()
        return any(each.plugin_name == plugin for each in implementations)

    def _implementations(self, module: ModuleType) -> Iterator[tuple[str, Mapping[str, Any]]]:
        for attribute in dir(module):
            options = self._manager.parse_hookimpl_opts(module, attribute)
            if options is not None:
                yield attribute, options

    def _check(
        self, attribute: str, function: Callable[..., Any], options: Mapping[str, Any]
    ) -> None:
        hook = options.get("specname") or attribute
        if hook not in self._names:
            near = difflib.get_close_matches(hook, self._names, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"the hooks are {_list(self._names)}"
            raise HookError(f"it implements the hook {hook!r}, which core does not have; {hint}")
        if options.get("wrapper") or options.get("hookwrapper"):
            raise HookError(
                f"its implementation of {hook!r} is a hook wrapper, which core does not call;"
                " make it a plain function"
            )
        given = _required_arguments(function)
        if given:
            raise HookError(
                f"its implementation of the hook {hook!r} must take no argument, but it is"
                f" {hook}{inspect.signature(function)}; remove {_list(given)}"
            )

    def _check_unmarked(self, module: ModuleType) -> None:
        for hook in self._names:
            function = vars(module).get(hook)
            if inspect.isroutine(function) and not hasattr(function, f"{hookspecs.PROJECT}_impl"):
                raise HookError(
                    f"it defines {hook!r} without the decorator that makes it a hook;"
                    " write @hookimpl (from custom_pypto.core) above it"
                )


def _required_arguments(function: Callable[..., Any]) -> list[str]:
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [
        parameter.name
        for parameter in inspect.signature(function).parameters.values()
        if parameter.default is parameter.empty and parameter.kind not in variadic
    ]


def _result(hook: str, function: Callable[[], object]) -> object:
    try:
        return function()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise HookError(f"{hook} raised {described(error)}") from error


def _checked(hook: str, result: object, ops: Sequence[str]) -> Mapping[str, Any]:
    what, is_right = _VALUES[hook]
    if not isinstance(result, Mapping):
        raise HookError(
            f"{hook} must return a mapping from op names to {what}s, got {_shown(result)}"
        )
    for op, value in result.items():
        if op not in ops:
            near = difflib.get_close_matches(str(op), ops, n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise HookError(
                f"{hook} names {op!r}, which is no op of this plugin; {hint}its ops are"
                f" {_list(ops)}"
            )
        if not is_right(value):
            raise HookError(f"{hook}: the value of {op!r} must be a {what}, got {_shown(value)}")
    return result


def _is_autograd(value: object) -> bool:
    return isinstance(value, Autograd) and callable(value.backward)


def _is_reference(value: object) -> bool:
    return isinstance(value, Reference) and callable(value.function)


_VALUES: Mapping[str, tuple[str, Callable[[object], bool]]] = {
    FAKES: ("callable", callable),
    AUTOGRAD: ("custom_pypto.core.Autograd with a callable backward", _is_autograd),
    CONVERTERS: ("callable", callable),
    SAMPLES: ("callable", callable),
    REFERENCES: ("custom_pypto.core.Reference with a callable function", _is_reference),
}


def _list(names: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in names)


def _shown(value: object) -> str:
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= 60 else f'{text[:57]}...'}"
