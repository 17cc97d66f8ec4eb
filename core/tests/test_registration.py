"""Registration of ops and kernels by a plugin's library: done, refused, undone."""

import ctypes
from collections.abc import Iterator

import pytest
import torch
from cpp_library import HIDDEN, Library, build

ops = torch.ops.custom_pypto


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Library:
    """A plugin that is not registered."""
    return Library(build("plugin", tmp_path_factory.mktemp("plugin") / "plugin.so", *HIDDEN))


@pytest.fixture(scope="module")
def refused(tmp_path_factory: pytest.TempPathFactory) -> Library:
    """A library of registrations that are refused."""
    return Library(build("refused", tmp_path_factory.mktemp("refused") / "refused.so", *HIDDEN))


@pytest.fixture
def plugin(opened: Library) -> Iterator[Library]:
    assert opened.register() == (0, "")
    yield opened
    opened.unregister()


def has_op(name: str) -> bool:
    return bool(torch._C._jit_get_schemas_for_operator(f"custom_pypto::{name}"))


def test_registering_twice_is_an_error_that_keeps_the_ops(plugin: Library) -> None:
    assert plugin.register() == (1, "the plugin's ops are registered already")
    assert ops.headers_length(torch.ones(3), "four") == 7
    assert ops.headers_length.twice(torch.ones(3)) == 6


def test_op_of_another_plugin_is_refused_by_its_path(plugin: Library, refused: Library) -> None:
    code, error = refused.call("try_registration", b"duplicate")
    assert code == 1
    assert error.startswith("headers_length: torch refused the schema `headers_length(Tensor self")
    assert str(plugin.path) in error
    assert ops.headers_length(torch.ones(3)) == 3
    assert not has_op("bad")
    plugin.unregister()
    assert refused.call("try_registration", b"duplicate") == (0, "")


def test_unregister_drops_the_schemas_as_often_as_it_is_called(opened: Library) -> None:
    for _ in range(3):
        assert opened.register() == (0, "")
        assert ops.headers_length(torch.ones(2)) == 2
        for _ in range(2):
            opened.unregister()
            assert not has_op("headers_length")


REFUSALS = {
    "kernel_twice": ("bad: two CPU kernels are registered", ""),
    "throws": ("the author's own reason", ""),
    "throws_an_int": ("registration threw something that is no std::exception", ""),
    "op_twice": ("bad: torch refused the schema `bad(Tensor self) -> Tensor`: ", "multiple times"),
    "dispatch_key": ("bad: torch has no dispatch key `Abacus` for kernels: ", "Abacus"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_a_refusal_leaves_nothing_registered(refused: Library, case: str) -> None:
    ours, torchs = REFUSALS[case]
    code, error = refused.call("try_registration", case.encode())
    assert code == 1
    assert error.startswith(ours)
    assert torchs in error[len(ours) :]
    assert (error == ours) == (torchs == "")
    assert not has_op("bad")
    assert refused.call("try_registration", b"none") == (0, "")


@pytest.mark.parametrize(("size", "text"), [(1, ""), (2, ""), (3, "é"), (6, "éé"), (7, "ééé")])
def test_error_is_cut_between_characters(refused: Library, size: int, text: str) -> None:
    assert refused.call("try_registration", b"wide_text", size=size) == (1, text)


def test_error_may_be_unwanted(refused: Library) -> None:
    assert refused.handle.try_registration(b"throws", None, ctypes.c_size_t(0)) == 1
