"""Hooks of one plugin: what is accepted, and what is said of what is not."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pluggy
import pytest
from custom_pypto.core.hooks import AUTOGRAD, FAKES, REFERENCES, SAMPLES, HookError, Hooks
from custom_pypto_plugin import Autograd, Reference, hookimpl

OPS = ["first", "second.overload"]


def module(**functions: Any) -> ModuleType:
    """A plugin's module that defines `functions`."""
    made = ModuleType("acme")
    vars(made).update(functions)
    return made


def returning(value: object) -> Callable[[], object]:
    """A hook implementation that returns `value`."""
    return hookimpl(lambda: value)


def refusal(**functions: Any) -> str:
    """Why a module that defines `functions` is refused; nothing of it may be left."""
    hooks = Hooks()
    with pytest.raises(HookError) as caught:
        hooks.add("acme", module(**functions))
    assert not hooks.implements("acme", FAKES)
    hooks.add("acme", module())
    return str(caught.value)


def bad_result(hook: str, value: object) -> str:
    """What is said of an implementation of `hook` that returns `value`."""
    hooks = Hooks()
    hooks.add("acme", module(**{hook: returning(value)}))
    with pytest.raises(HookError) as caught:
        hooks.call("acme", hook, OPS)
    return str(caught.value)


def test_result_of_a_hook_is_the_mapping_that_the_plugin_returns() -> None:
    hooks = Hooks()
    hooks.add("acme", module(custom_pypto_fakes=returning({"first": abs, "second.overload": abs})))
    assert hooks.call("acme", FAKES, OPS) == {"first": abs, "second.overload": abs}


def test_hook_that_a_plugin_does_not_implement_gives_nothing() -> None:
    hooks = Hooks()
    hooks.add("acme", module())
    assert hooks.call("acme", FAKES, OPS) == {}
    assert not hooks.implements("acme", FAKES)


def test_plugins_are_called_one_by_one() -> None:
    hooks = Hooks()
    hooks.add("one", module(custom_pypto_fakes=returning({"first": abs})))
    hooks.add("two", module(custom_pypto_fakes=hookimpl(lambda: 1 / 0)))
    assert hooks.call("one", FAKES, OPS) == {"first": abs}


def test_removed_plugin_is_forgotten() -> None:
    hooks = Hooks()
    hooks.add("acme", module(custom_pypto_fakes=returning({"first": abs})))
    hooks.remove("acme")
    assert hooks.call("acme", FAKES, OPS) == {}


def test_removing_an_unknown_plugin_is_harmless() -> None:
    Hooks().remove("acme")


def test_implementation_by_specname_is_called() -> None:
    hooks = Hooks()
    hooks.add("acme", module(fakes=hookimpl(lambda: {"first": abs}, specname=FAKES)))
    assert hooks.call("acme", FAKES, OPS) == {"first": abs}


def test_unknown_hook_is_refused_with_the_near_miss() -> None:
    assert refusal(custom_pypto_fake=returning({})) == (
        "it implements the hook 'custom_pypto_fake', which core does not have; did you mean"
        " 'custom_pypto_fakes'?"
    )


def test_unknown_hook_without_a_near_miss_is_refused_with_all_hooks() -> None:
    assert refusal(on_load=returning({})) == (
        "it implements the hook 'on_load', which core does not have; the hooks are"
        " 'custom_pypto_autograd', 'custom_pypto_converters', 'custom_pypto_fakes',"
        " 'custom_pypto_references', 'custom_pypto_samples'"
    )


def test_argument_that_the_hook_does_not_have_is_refused() -> None:
    @hookimpl
    def custom_pypto_fakes(op: str, *rest: str, device: str = "cpu") -> dict[str, Any]:
        return {}

    assert refusal(custom_pypto_fakes=custom_pypto_fakes) == (
        "its implementation of the hook 'custom_pypto_fakes' must take no argument, but it is"
        " custom_pypto_fakes(op: 'str', *rest: 'str', device: 'str' = 'cpu') -> 'dict[str, Any]';"
        " remove 'op'"
    )


def test_argument_by_keyword_only_is_refused() -> None:
    @hookimpl
    def custom_pypto_fakes(*, op: str) -> dict[str, Any]:
        return {}

    assert refusal(custom_pypto_fakes=custom_pypto_fakes).endswith("remove 'op'")


def test_arguments_with_defaults_are_accepted() -> None:
    @hookimpl
    def custom_pypto_fakes(op: str = "first") -> dict[str, Any]:
        return {op: abs}

    hooks = Hooks()
    hooks.add("acme", module(custom_pypto_fakes=custom_pypto_fakes))
    assert hooks.call("acme", FAKES, OPS) == {"first": abs}


@pytest.mark.parametrize("kind", ["wrapper", "hookwrapper"])
def test_hook_wrapper_is_refused(kind: str) -> None:
    def custom_pypto_fakes() -> Any:
        yield

    marked = hookimpl(custom_pypto_fakes, **{kind: True})
    assert refusal(custom_pypto_fakes=marked) == (
        "its implementation of 'custom_pypto_fakes' is a hook wrapper, which core does not call;"
        " make it a plain function"
    )


def test_hook_without_the_decorator_is_refused() -> None:
    def custom_pypto_fakes() -> dict[str, Any]:
        return {}

    assert refusal(custom_pypto_fakes=custom_pypto_fakes) == (
        "it defines 'custom_pypto_fakes' without the decorator that makes it a hook; write"
        " @hookimpl (from custom_pypto.core) above it"
    )


def test_hook_of_another_project_is_refused() -> None:
    @pluggy.HookimplMarker("pytest")
    def custom_pypto_fakes() -> dict[str, Any]:
        return {}

    assert "without the decorator" in refusal(custom_pypto_fakes=custom_pypto_fakes)


def test_implementation_that_pluggy_refuses_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def half_registered(self: Any, plugin: Any, name: str) -> None:
        register(self, plugin, name)
        raise pluggy.PluginValidationError(plugin, "refused")

    register = pluggy.PluginManager.register
    hooks = Hooks()
    with monkeypatch.context() as patch:
        # As pluggy 1.6 leaves a plugin that it refuses.
        patch.setattr(pluggy.PluginManager, "register", half_registered)
        with pytest.raises(HookError, match="refused"):
            hooks.add("acme", module(custom_pypto_fakes=returning({"first": abs})))
    hooks.add("acme", module())
    assert hooks.call("acme", FAKES, OPS) == {}


def test_exception_of_a_hook_is_told_with_its_place() -> None:
    hooks = Hooks()
    hooks.add("acme", module(custom_pypto_fakes=hookimpl(lambda: 1 / 0)))
    with pytest.raises(HookError) as caught:
        hooks.call("acme", FAKES, OPS)
    assert str(caught.value).startswith("custom_pypto_fakes raised ZeroDivisionError: division by")
    assert f"({__file__}, line " in str(caught.value)


def test_system_exit_of_a_hook_is_told() -> None:
    def leave() -> None:
        raise SystemExit

    hooks = Hooks()
    hooks.add("acme", module(custom_pypto_fakes=hookimpl(leave)))
    with pytest.raises(HookError, match="custom_pypto_fakes raised SystemExit"):
        hooks.call("acme", FAKES, OPS)


def test_keyboard_interrupt_of_a_hook_passes() -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    hooks = Hooks()
    hooks.add("acme", module(custom_pypto_fakes=hookimpl(interrupt)))
    with pytest.raises(KeyboardInterrupt):
        hooks.call("acme", FAKES, OPS)


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, "NoneType None"), ([("first", abs)], "list [('first', <built-in function abs>)]")],
)
def test_result_that_is_no_mapping_is_refused(value: object, shown: str) -> None:
    assert bad_result(FAKES, value) == (
        f"custom_pypto_fakes must return a mapping from op names to callables, got {shown}"
    )


def test_op_of_another_plugin_is_refused() -> None:
    assert bad_result(FAKES, {"frist": abs}) == (
        "custom_pypto_fakes names 'frist', which is no op of this plugin; did you mean 'first'? its"
        " ops are 'first', 'second.overload'"
    )


def test_key_that_is_no_text_is_refused() -> None:
    assert bad_result(FAKES, {3: abs}).startswith("custom_pypto_fakes names 3, which is no op")


@pytest.mark.parametrize(
    ("hook", "value", "rule"),
    [
        (FAKES, 3, "must be a callable, got int 3"),
        (SAMPLES, [], "must be a callable, got list []"),
        (AUTOGRAD, abs, "must be a custom_pypto.core.Autograd with a callable backward, got"),
        (AUTOGRAD, Autograd("no"), "must be a custom_pypto.core.Autograd with a callable"),  # type: ignore[arg-type]
        (REFERENCES, abs, "must be a custom_pypto.core.Reference with a callable function, got"),
        (REFERENCES, Reference(None), "must be a custom_pypto.core.Reference with a callable"),  # type: ignore[arg-type]
    ],
)
def test_value_of_the_wrong_type_is_refused(hook: str, value: object, rule: str) -> None:
    assert bad_result(hook, {"first": value}).startswith(f"{hook}: the value of 'first' {rule}")
