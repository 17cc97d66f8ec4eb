"""Hooks of one plugin: what is accepted, and what is said of what is not."""

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
    before = dict(manager.list_name_plugin())
    yield
    for name in dict(manager.list_name_plugin()).keys() - before.keys():
        manager.unregister(name=name)


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


@hookimpl
def from_generated(generated: Any) -> Any:
    return {"first": generated["first"]}


@hookimpl
def from_default(op: str = "first") -> dict[str, Any]:
    return {op: abs}


FAKES_THAT_WORK = {
    "all": ({FAKES: returning(dict.fromkeys(OPS, abs))}, OPS),
    "in a wrapper": (
        {
            FAKES: returning({"first": len}),
            "around": hookimpl(lambda: {**(yield), "first": abs}, specname=FAKES, wrapper=True),
        },
        ["first"],
    ),
    "by specname": ({"fakes": hookimpl(lambda: {"first": abs}, specname=FAKES)}, ["first"]),
    "of the generated ones": ({FAKES: from_generated}, ["first"]),
    "with an argument that has a default": ({FAKES: from_default}, ["first"]),
    "beside an optional hook, as of a newer core": (
        {
            FAKES: returning({"first": abs}),
            "custom_pypto_later": hookimpl(lambda: None, optionalhook=True),
        },
        ["first"],
    ),
}


@pytest.mark.parametrize(("functions", "ops"), FAKES_THAT_WORK.values(), ids=FAKES_THAT_WORK)
def test_result_is_what_the_plugin_returns(functions: dict[str, Any], ops: list[str]) -> None:
    hooks = hooks_of(**functions)
    assert fakes_of(hooks, {"first": abs, "second.overload": len}) == dict.fromkeys(ops, abs)


def test_a_hook_is_not_called_for_another_plugin() -> None:
    hooks, without = hooks_of(custom_pypto_fakes=returning({"first": abs})), hooks_of("without")
    around = hookimpl(lambda: 1 / (yield), specname=FAKES, wrapper=True)
    hooks_of("other", custom_pypto_fakes=hookimpl(lambda: 1 / 0), around=around)
    assert (fakes_of(hooks), fakes_of(without)) == ({"first": abs}, {})
    assert not without.implements(FAKES)


def test_unregister_takes_the_plugin_out_of_the_manager() -> None:
    hooks = hooks_of(custom_pypto_fakes=returning({}))
    assert manager.has_plugin("acme")
    hooks.unregister()
    assert not manager.has_plugin("acme")
    assert not hooks.implements(FAKES)


@hookimpl
def with_other_argument(op: str, *rest: str, device: str = "cpu") -> dict[str, Any]:
    return {}


def undecorated() -> dict[str, Any]:
    return {}


WITHOUT_DECORATOR = (
    "it defines 'custom_pypto_fakes' without the decorator that makes it a hook; write @hookimpl"
    " (from custom_pypto_plugin) above it"
)
ALL_HOOKS = (
    "the hooks are 'custom_pypto_autograd', 'custom_pypto_converters', 'custom_pypto_fakes',"
    " 'custom_pypto_kernels', 'custom_pypto_references', 'custom_pypto_samples'"
)
NOT_IN_HOOKSPEC = "{'op'} are declared in the hookimpl but can not be found in the hookspec"


@pytest.mark.parametrize(
    ("name", "function", "words"),
    [
        (FAKES, undecorated, [WITHOUT_DECORATOR]),
        (FAKES, pluggy.HookimplMarker("pytest")(undecorated), [WITHOUT_DECORATOR]),
        (FAKES, with_other_argument, ["for hook 'custom_pypto_fakes'", NOT_IN_HOOKSPEC]),
        ("on_load", returning({}), [f"unknown hook 'on_load'; {ALL_HOOKS}"]),
        (FAKES[:-1], returning({}), [f"; did you mean {FAKES!r}? {ALL_HOOKS}"]),
    ],
)
def test_what_is_no_hook_is_refused(name: str, function: Any, words: list[str]) -> None:
    reason = refusal(**{name: function})
    assert all(each in reason for each in words), reason
    assert not manager.has_plugin("refused")


@hookimpl
def by_keyword_only(*, op: str) -> dict[str, Any]:
    return {}


def raising(error: BaseException) -> Callable[[], object]:
    """A hook implementation that raises `error`."""

    def custom_pypto_fakes() -> None:
        raise error

    return hookimpl(custom_pypto_fakes)


MUST = "the value of 'first' must be a"
OTHER_OP = (
    "is not an op of this plugin; did you mean 'first'? its ops are 'first', 'second.overload'"
)
# A hook, its implementation or what that returns, and what follows the hook's name in the error.
BAD_RESULTS: list[tuple[str, object, str]] = [
    (FAKES, by_keyword_only, " raised TypeError: "),
    (FAKES, raising(ValueError("no")), f" raised ValueError: no ({__file__}"),
    (FAKES, raising(SystemExit()), " raised SystemExit"),
    (FAKES, None, " must return a mapping from op names to callables, got NoneType None"),
    (FAKES, hookimpl(lambda: (yield), wrapper=True), " must return a mapping from op names to"),
    (FAKES, [("one", 3)], " must return a mapping from op names to callables, got list [('one'"),
    (FAKES, {"frist": abs}, f": 'frist' {OTHER_OP}"),
    (FAKES, {3: abs}, ": 3 is not an op of"),
    (FAKES, {"first": 3}, f": {MUST} callable, got int 3"),
    (KERNELS, {"first": abs}, f": {MUST} mapping from dispatch keys to callable, got"),
    (KERNELS, {"first": {"CPU": 3}}, f": {MUST} mapping from dispatch keys to callable, got dict"),
    (SAMPLES, {"first": []}, f": {MUST} callable, got list []"),
    *(
        (AUTOGRAD, {"first": value}, f": {MUST} custom_pypto_plugin.Autograd with a callable backw")
        for value in (abs, Autograd("no"))  # type: ignore[arg-type]
    ),
    *(
        (REFERENCES, {"first": value}, f": {MUST} custom_pypto_plugin.Reference with a callable fu")
        for value in (abs, Reference(None))  # type: ignore[arg-type]
    ),
]


@pytest.mark.parametrize(("hook", "given", "error"), BAD_RESULTS)
def test_bad_result_of_a_hook_is_refused(hook: str, given: Any, error: str) -> None:
    hooks = hooks_of(**{hook: given if callable(given) else returning(given)})
    with pytest.raises(HookError) as caught:
        hooks.call(hook, **({"generated": {}} if hook == FAKES else {}))
    assert str(caught.value).startswith(f"{hook}{error}")


def test_keyboard_interrupt_of_a_hook_passes() -> None:
    with pytest.raises(KeyboardInterrupt):
        fakes_of(hooks_of(custom_pypto_fakes=raising(KeyboardInterrupt())))
