"""Hooks of one plugin: what is accepted, and what is said of what is not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pluggy
import pytest
from custom_pypto.core.hooks import (
    AUTOGRAD,
    FAKES,
    KERNELS,
    REFERENCES,
    SAMPLES,
    HookError,
    Hooks,
    manager,
)
from custom_pypto_plugin import Autograd, Reference, hookimpl

OPS = ["first", "second.overload"]


@pytest.fixture(autouse=True)
def without_plugins() -> Iterator[None]:
    """Take the plugins of each test out of the manager of the process."""
    before = manager.get_plugins()
    yield
    for plugin in manager.get_plugins() - before:
        manager.unregister(plugin)


def hooks_of(plugin: str = "acme", **functions: Any) -> Hooks:
    """The hooks of a plugin whose module defines `functions`."""
    made = ModuleType(plugin)
    vars(made).update(functions)
    return Hooks(plugin, made, OPS)


def returning(value: object) -> Callable[[], object]:
    """A hook implementation that returns `value`."""
    return hookimpl(lambda: value)


def fakes_of(hooks: Hooks, generated: object = None) -> Any:
    return hooks.call(FAKES, generated=generated or {})


def refusal(**functions: Any) -> str:
    """Why a module that defines `functions` is refused."""
    with pytest.raises(HookError) as caught:
        hooks_of("refused", **functions)
    return str(caught.value)


def bad_result(hook: str, value: object) -> str:
    """Return the error of an implementation of `hook` that returns `value`."""
    hooks = hooks_of(**{hook: returning(value)})
    with pytest.raises(HookError) as caught:
        hooks.call(hook, **({"generated": {}} if hook == FAKES else {}))
    return str(caught.value)


@hookimpl
def from_generated(generated: Any) -> Any:
    return {"first": generated["first"]}


@hookimpl
def from_default(op: str = "first") -> dict[str, Any]:
    return {op: abs}


FAKES_THAT_WORK = {
    "all": (
        {FAKES: returning({"first": abs, "second.overload": abs})},
        ["first", "second.overload"],
    ),
    "by specname": ({"fakes": hookimpl(lambda: {"first": abs}, specname=FAKES)}, ["first"]),
    "of the generated ones": ({FAKES: from_generated}, ["first"]),
    "with an argument that has a default": ({FAKES: from_default}, ["first"]),
}


@pytest.mark.parametrize(("functions", "ops"), FAKES_THAT_WORK.values(), ids=FAKES_THAT_WORK)
def test_result_of_a_hook_is_the_mapping_that_the_plugin_returns(
    functions: dict[str, Any], ops: list[str]
) -> None:
    hooks = hooks_of(**functions)
    assert fakes_of(hooks, {"first": abs, "second.overload": len}) == dict.fromkeys(ops, abs)


def test_hook_that_a_plugin_does_not_implement_gives_nothing() -> None:
    hooks = hooks_of()
    assert fakes_of(hooks) == {}
    assert not hooks.implements(FAKES)


def test_plugins_do_not_share_hooks() -> None:
    one = hooks_of(custom_pypto_fakes=returning({"first": abs}))
    hooks_of("other", custom_pypto_fakes=hookimpl(lambda: 1 / 0))
    assert fakes_of(one) == {"first": abs}


def test_plugins_are_in_the_manager_under_their_names_unless_they_are_refused() -> None:
    hooks = hooks_of(custom_pypto_fakes=returning({}))
    assert "custom_pypto_fake'" in refusal(custom_pypto_fake=returning({}))
    assert not manager.has_plugin("refused")
    assert manager.has_plugin("acme")
    hooks.unregister()
    assert not manager.has_plugin("acme")
    assert not hooks.implements(FAKES)


def test_unknown_hook_is_refused_with_the_near_miss() -> None:
    reason = refusal(custom_pypto_fake=returning({}))
    assert reason.startswith("unknown hook 'custom_pypto_fake' in plugin <module 'refused'>")
    assert reason.endswith("; did you mean 'custom_pypto_fakes'?")


def test_unknown_hook_without_a_near_miss_is_refused_with_all_hooks() -> None:
    assert refusal(on_load=returning({})).endswith(
        "; there are 'custom_pypto_autograd', 'custom_pypto_converters', 'custom_pypto_fakes',"
        " 'custom_pypto_kernels', 'custom_pypto_references', 'custom_pypto_samples'"
    )


def test_unknown_hook_that_is_optional_is_accepted() -> None:
    # For a hook of a newer core.
    hooks_of(custom_pypto_later=hookimpl(lambda: None, optionalhook=True))


def test_argument_that_the_hook_does_not_have_is_refused() -> None:
    @hookimpl
    def custom_pypto_fakes(op: str, *rest: str, device: str = "cpu") -> dict[str, Any]:
        return {}

    reason = refusal(custom_pypto_fakes=custom_pypto_fakes)
    assert "for hook 'custom_pypto_fakes'" in reason
    assert "{'op'} are declared in the hookimpl but can not be found in the hookspec" in reason


def test_argument_by_keyword_only_is_reported_when_the_hook_is_called() -> None:
    @hookimpl
    def custom_pypto_fakes(*, op: str) -> dict[str, Any]:
        return {}

    hooks = hooks_of(custom_pypto_fakes=custom_pypto_fakes)
    with pytest.raises(HookError, match="missing 1 required keyword-only argument: 'op'"):
        fakes_of(hooks)


def undecorated() -> dict[str, Any]:
    return {}


@pytest.mark.parametrize("decorate", [lambda hook: hook, pluggy.HookimplMarker("pytest")])
def test_hook_without_the_decorator_or_of_another_project_is_refused(
    decorate: Callable[[Any], Any],
) -> None:
    assert refusal(custom_pypto_fakes=decorate(undecorated)) == (
        "it defines 'custom_pypto_fakes' without the decorator that makes it a hook; write"
        " @hookimpl (from custom_pypto_plugin) above it"
    )


def raising(hook_raises: BaseException) -> Hooks:
    """Hooks of a plugin whose fakes raise an exception."""

    def custom_pypto_fakes() -> None:
        raise hook_raises

    return hooks_of(custom_pypto_fakes=hookimpl(custom_pypto_fakes))


def test_exception_of_a_hook_is_reported_with_its_place() -> None:
    with pytest.raises(HookError) as caught:
        fakes_of(raising(ZeroDivisionError("division by zero")))
    assert str(caught.value).startswith("custom_pypto_fakes raised ZeroDivisionError: division by")
    assert f"({__file__}, line " in str(caught.value)


def test_system_exit_of_a_hook_is_reported() -> None:
    with pytest.raises(HookError, match="custom_pypto_fakes raised SystemExit"):
        fakes_of(raising(SystemExit()))


def test_keyboard_interrupt_of_a_hook_passes() -> None:
    with pytest.raises(KeyboardInterrupt):
        fakes_of(raising(KeyboardInterrupt()))


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
        "custom_pypto_fakes: 'frist' is not an op of this plugin; did you mean 'first'? its ops"
        " are 'first', 'second.overload'"
    )


def test_key_that_is_no_text_is_refused() -> None:
    assert bad_result(FAKES, {3: abs}).startswith("custom_pypto_fakes: 3 is not an op of")


@pytest.mark.parametrize(
    ("hook", "value", "rule"),
    [
        (FAKES, 3, "must be a callable, got int 3"),
        (KERNELS, abs, "must be a mapping from dispatch keys to callable, got"),
        (KERNELS, {"CPU": 3}, "must be a mapping from dispatch keys to callable, got dict"),
        (SAMPLES, [], "must be a callable, got list []"),
        (AUTOGRAD, abs, "must be a custom_pypto_plugin.Autograd with a callable backward, got"),
        (AUTOGRAD, Autograd("no"), "must be a custom_pypto_plugin.Autograd with a callable"),  # type: ignore[arg-type]
        (REFERENCES, abs, "must be a custom_pypto_plugin.Reference with a callable function, got"),
        (REFERENCES, Reference(None), "must be a custom_pypto_plugin.Reference with a callable"),  # type: ignore[arg-type]
    ],
)
def test_value_of_the_wrong_type_is_refused(hook: str, value: object, rule: str) -> None:
    assert bad_result(hook, {"first": value}).startswith(f"{hook}: the value of 'first' {rule}")
