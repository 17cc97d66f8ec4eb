"""Registration of ops and kernels by a plugin's library: done, refused, undone."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import pytest
import torch
from cpp_library import HIDDEN, Library, build

ops = torch.ops.custom_pypto


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Library]:
    folder = tmp_path_factory.mktemp("registration")
    return {
        name: Library(build(name, folder / f"{name}.so", *HIDDEN)) for name in ("plugin", "refused")
    }


@pytest.fixture
def plugin(libraries: dict[str, Library]) -> Iterator[Library]:
    library = libraries["plugin"]
    assert library.register() == (0, "")
    yield library
    library.unregister()


def has_op(name: str) -> bool:
    return bool(torch._C._jit_get_schemas_for_operator(f"custom_pypto::{name}"))


def test_registering_twice_is_an_error_that_keeps_the_ops(
    plugin: Library,
) -> None:
    assert plugin.register() == (1, "the plugin's ops are registered already")
    assert ops.headers_length(torch.ones(3), "four") == 7
    assert ops.headers_length.twice(torch.ones(3)) == 6


def test_op_of_another_plugin_is_refused_by_its_path(
    plugin: Library, libraries: dict[str, Library]
) -> None:
    code, error = libraries["refused"].call("try_registration", b"duplicate")
    assert code == 1
    assert error.startswith("headers_length: torch refused the schema `headers_length(Tensor self")
    assert str(plugin.path) in error
    assert ops.headers_length(torch.ones(3)) == 3
    assert not has_op("bad")
    plugin.unregister()
    assert libraries["refused"].call("try_registration", b"duplicate") == (0, "")


def test_unregister_drops_the_schemas_as_often_as_it_is_called(
    libraries: dict[str, Library],
) -> None:
    library = libraries["plugin"]
    for _ in range(3):
        assert library.register() == (0, "")
        assert ops.headers_length(torch.ones(2)) == 2
        for _ in range(2):
            library.unregister()
            assert not has_op("headers_length")


REFUSALS = {
    "kernel_twice": ("bad: two CPU kernels are registered", ""),
    "throws": ("the author's own reason", ""),
    "throws_an_int": ("registration threw something that is no std::exception", ""),
    "op_twice": ("bad: torch refused the schema `bad(Tensor self) -> Tensor`: ", "multiple times"),
    "dispatch_key": ("bad: torch has no dispatch key `Abacus` for kernels: ", "Abacus"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_a_refusal_leaves_nothing_registered(libraries: dict[str, Library], case: str) -> None:
    ours, torchs = REFUSALS[case]
    code, error = libraries["refused"].call("try_registration", case.encode())
    assert code == 1
    assert error.startswith(ours)
    assert torchs in error[len(ours) :]
    assert (error == ours) == (torchs == "")
    assert not has_op("bad")
    assert libraries["refused"].call("try_registration", b"none") == (0, "")


@pytest.mark.parametrize(("size", "text"), [(1, ""), (2, ""), (3, "é"), (6, "éé"), (7, "ééé")])
def test_error_is_cut_between_characters(
    libraries: dict[str, Library], size: int, text: str
) -> None:
    assert libraries["refused"].call("try_registration", b"wide_text", size=size) == (1, text)


def test_error_may_be_unwanted(libraries: dict[str, Library]) -> None:
    assert libraries["refused"].handle.try_registration(b"throws", None, ctypes.c_size_t(0)) == 1
