"""The C++ headers, through small plugins: sources in cpp/, compiled once and opened by ctypes."""

from __future__ import annotations

import concurrent.futures
import ctypes
import gc
import os
import re
import resource
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import custom_pypto_contract.manifest as manifest
import numpy as np
import pytest
import torch
from custom_pypto.core.namespace import forget

SOURCES = Path(__file__).parent / "cpp"
INCLUDE = Path(__file__).parents[1] / "src" / "custom_pypto" / "core" / "include"
# Without those for one instruction set, which are tested by compiling for it.
HEADERS = sorted(path.name for path in (INCLUDE / "custom_pypto").glob("*.h"))
LIBRARIES = ("plugin", "duplicate", "refused", "types", "mutation", "kernels")
TORCH = Path(torch.__file__).parent
HIDDEN = ("-fvisibility=hidden", "-fvisibility-inlines-hidden")

ops = torch.ops.custom_pypto


def compile_command(*arguments: str | Path) -> list[str]:
    return [
        *shlex.split(os.environ.get("CXX", "c++")),
        *("-std=c++17", "-O2", "-fPIC", "-Wall", "-Wextra", "-Wpedantic", "-Werror"),
        "-DTORCH_TARGET_VERSION=0x020a000000000000",
        f"-I{INCLUDE}",
        *("-isystem", str(TORCH / "include")),
        *map(str, arguments),
    ]


def link_command(source: Path, library: Path, *flags: str) -> list[str]:
    return [
        *compile_command(*flags, "-shared", source, "-o", library),
        *(f"-L{TORCH / 'lib'}", "-ltorch_cpu", "-Wl,--no-undefined", "-ldl"),
    ]


def run(command: list[str]) -> str:
    """Runs `command`, returns what it printed, fails the test with it when it fails."""
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout + result.stderr


class Library:
    """A compiled plugin, opened as core opens it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.handle = ctypes.CDLL(str(path), mode=os.RTLD_NOW | os.RTLD_LOCAL)

    def register(self, size: int = 4096) -> tuple[int, str]:
        return self.call("custom_pypto_register_v1", size=size)

    def unregister(self) -> None:
        # What torch.ops keeps of an op points to where its schema was.
        forget([each for each in vars(ops) if each.startswith("headers_")])
        self.handle.custom_pypto_unregister_v1()

    def call(self, function: str, *arguments: bytes, size: int = 4096) -> tuple[int, str]:
        """Calls int function(arguments..., char* text, size_t size)."""
        text = ctypes.create_string_buffer(size)
        code = self.handle[function](*arguments, text, ctypes.c_size_t(size))
        return code, text.value.decode()


@pytest.fixture(scope="session")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Library]:
    folder = tmp_path_factory.mktemp("libraries")
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        commands = {
            name: link_command(SOURCES / f"{name}.cpp", folder / f"{name}.so", *HIDDEN)
            for name in LIBRARIES
        }
        commands["visible"] = link_command(SOURCES / "plugin.cpp", folder / "visible.so", "-O0")
        list(pool.map(run, commands.values()))
    return {name: Library(folder / f"{name}.so") for name in commands}


def registered(library: Library) -> Iterator[Library]:
    assert library.register() == (0, "")
    yield library
    library.unregister()


@pytest.fixture
def plugin(libraries: dict[str, Library]) -> Iterator[Library]:
    yield from registered(libraries["plugin"])


@pytest.fixture
def types(libraries: dict[str, Library]) -> Iterator[Library]:
    yield from registered(libraries["types"])


@pytest.fixture
def mutation(libraries: dict[str, Library]) -> Iterator[Library]:
    yield from registered(libraries["mutation"])


@pytest.fixture
def kernels(libraries: dict[str, Library]) -> Iterator[Library]:
    yield from registered(libraries["kernels"])


def has_op(name: str) -> bool:
    return bool(torch._C._jit_get_schemas_for_operator(f"custom_pypto::{name}"))


# --- headers ---


def test_each_header_compiles_alone(tmp_path: Path) -> None:
    def check(header: str) -> None:
        source = tmp_path / f"{header}.cpp"
        source.write_text(f"#include <custom_pypto/{header}>\n#include <custom_pypto/{header}>\n")
        run(compile_command("-fsyntax-only", "-O0", source))

    assert "plugin.h" in HEADERS
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(check, HEADERS))


def test_headers_compile_as_cpp20_for_a_newer_torch() -> None:
    newer = ("-std=c++20", "-UTORCH_TARGET_VERSION", "-DTORCH_TARGET_VERSION=0x020d000000000000")
    run(compile_command("-fsyntax-only", "-O0", *newer, SOURCES / "types.cpp"))


def test_abi_version_is_the_one_of_the_manifest() -> None:
    text = (INCLUDE / "custom_pypto" / "abi.h").read_text()
    version = re.findall(r"#define CUSTOM_PYPTO_ABI_(?:MAJOR|MINOR) (\d+)", text)
    assert tuple(map(int, version)) == manifest.CORE_ABI


def test_type_that_no_schema_has_does_not_compile() -> None:
    command = compile_command("-fsyntax-only", SOURCES / "no_kernel_type.cpp")
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode != 0
    assert "custom_pypto: a kernel takes and returns Tensor, int64_t, double" in result.stderr
    assert re.search(r"Value<int>", result.stderr)


def test_torch_target_that_is_too_old_does_not_compile() -> None:
    older = ("-UTORCH_TARGET_VERSION", "-DTORCH_TARGET_VERSION=0x0209000000000000")
    command = compile_command("-fsyntax-only", *older, SOURCES / "plugin.cpp")
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "custom_pypto needs -DTORCH_TARGET_VERSION of at least 2.10" in result.stderr


# --- symbols ---


def symbols(library: Library, which: str) -> list[str]:
    return run(["nm", "-DC", which, str(library.path)]).splitlines()


@pytest.mark.parametrize("name", ["plugin", "types", "mutation", "kernels"])
def test_library_needs_no_symbol_of_python_or_of_the_unstable_abi(
    libraries: dict[str, Library], name: str
) -> None:
    needed = symbols(libraries[name], "--undefined-only")
    assert any("torch_call_dispatcher" in each for each in needed)
    assert [each for each in needed if re.search(r"\bat::|\bc10::|\b_?Py[A-Z_]", each)] == []


@pytest.mark.parametrize("name", ["plugin", "types", "mutation", "kernels"])
def test_library_exports_its_two_functions_alone(libraries: dict[str, Library], name: str) -> None:
    defined = [each.split(maxsplit=2)[2] for each in symbols(libraries[name], "--defined-only")]
    # Visible whatever the flags: the C++ library's own templates, and the linker's marks.
    others = r"\bstd::|__gnu_cxx::|^(__bss_start|_edata|_end|_init|_fini)$"
    ours = [each for each in defined if not re.search(others, each)]
    assert sorted(ours) == ["custom_pypto_register_v1", "custom_pypto_unregister_v1"]


def test_no_object_is_shared_between_plugins_without_visibility_flags(
    libraries: dict[str, Library],
) -> None:
    defined = symbols(libraries["visible"], "--defined-only")
    objects = [each for each in defined if each.split(maxsplit=2)[1] in "uVvBDR"]
    assert [each for each in objects if "custom_pypto::" in each or "torch::" in each] == []


def test_schemas_stand_in_their_section(libraries: dict[str, Library], tmp_path: Path) -> None:
    copied = tmp_path / "section"
    library = str(libraries["plugin"].path)
    run(["objcopy", "-O", "binary", "-j", "custom_pypto_schemas", library, str(copied)])
    assert sorted(copied.read_bytes().rstrip(b"\0").split(b"\0")) == [
        b"headers_length(Tensor self, str text='') -> int",
        b"headers_length.twice(Tensor self) -> int",
    ]


# --- registration ---


def test_registered_op_runs(plugin: Library) -> None:
    assert ops.headers_length(torch.ones(3), "four") == 7


def test_registered_overload_runs(plugin: Library) -> None:
    assert ops.headers_length.twice(torch.ones(3)) == 6


def test_registering_twice_is_an_error_and_keeps_the_ops(plugin: Library) -> None:
    assert plugin.register() == (1, "the plugin's ops are registered already")
    assert ops.headers_length(torch.ones(3)) == 3


def test_unregister_drops_the_schemas(libraries: dict[str, Library]) -> None:
    library = libraries["plugin"]
    library.register()
    assert has_op("headers_length")
    library.unregister()
    assert not has_op("headers_length")


def test_unregister_is_idempotent(libraries: dict[str, Library]) -> None:
    libraries["plugin"].unregister()
    libraries["plugin"].unregister()
    assert not has_op("headers_length")


def test_registers_again_after_unregister(libraries: dict[str, Library]) -> None:
    library = libraries["plugin"]
    for _ in range(3):
        assert library.register() == (0, "")
        assert ops.headers_length(torch.ones(2)) == 2
        library.unregister()


def test_duplicate_schema_is_an_error_that_names_the_first(
    plugin: Library, libraries: dict[str, Library]
) -> None:
    code, error = libraries["duplicate"].register()
    assert code != 0
    assert error.startswith("headers_length: torch refused the schema `headers_length(Tensor self")
    assert str(plugin.path) in error


def test_duplicate_schema_leaves_the_first_op_and_nothing_of_the_second(
    plugin: Library, libraries: dict[str, Library]
) -> None:
    libraries["duplicate"].register()
    assert ops.headers_length(torch.ones(3)) == 3
    assert not has_op("headers_duplicate_own")


def test_duplicate_registers_once_the_first_is_gone(libraries: dict[str, Library]) -> None:
    libraries["plugin"].register()
    assert libraries["duplicate"].register()[0] != 0
    libraries["plugin"].unregister()
    assert libraries["duplicate"].register() == (0, "")
    libraries["duplicate"].unregister()


REFUSALS = {
    "int_double": "bad: argument 2 'k' is `int` in the schema but `double` in the CPU kernel; "
    "declare it `int64_t` in the kernel, or `float` in the schema",
    "float_int": "bad: argument 2 'k' is `float` in the schema but `int64_t` in the CPU kernel; "
    "declare it `double` in the kernel, or `int` in the schema",
    "str_bool": "bad: argument 2 'k' is `str` in the schema but `bool` in the CPU kernel; "
    "declare it `std::string` in the kernel, or `bool` in the schema",
    "bool_str": "bad: argument 2 'k' is `bool` in the schema but `std::string` in the CPU kernel; "
    "declare it `bool` in the kernel, or `str` in the schema",
    "optional_missing": "bad: argument 2 'k' is `Tensor?` in the schema but `Tensor` in the "
    "PrivateUse1 kernel; declare it `std::optional<Tensor>` in the kernel, or `Tensor` in the "
    "schema",
    "optional_extra": "bad: argument 2 'k' is `int` in the schema but `std::optional<int64_t>` in "
    "the CPU kernel; declare it `int64_t` in the kernel, or `int?` in the schema",
    "list_missing": "bad: argument 2 'k' is `int[]` in the schema but `int64_t` in the CPU kernel; "
    "declare it `std::vector<int64_t>` in the kernel, or `int` in the schema",
    "list_of_optional": "bad: argument 2 'k' is `int[]?` in the schema but `std::vector<int64_t>` "
    "in the CPU kernel; declare it `std::optional<std::vector<int64_t>>` in the kernel, or "
    "`int[]` in the schema",
    "scalar": "bad: argument 2 'k' is `Scalar` in the schema but `double` in the CPU kernel; a "
    "`Scalar` cannot cross torch's stable ABI; use Tensor, int, float, bool, str, ScalarType, "
    "Device, and lists and optionals of these",
    "too_few": "bad: the schema has 2 arguments (self, k) but the CPU kernel takes 1",
    "return_missing": "bad: the schema has 1 return but the CPU kernel returns 0 values",
    "return_extra": "bad: the schema has 1 return but the CPU kernel returns 2 values",
    "return_type": "bad.out: return 2 is `float` in the schema but `int64_t` in the CPU kernel; "
    "declare it `double` in the kernel, or `int` in the schema",
    "tensor_with_default": "bad: argument `k` is a Tensor with a default, which can only be None; "
    "write `Tensor? k=None`",
    "aliased_return": "bad: a return is annotated `(a!)`, but torch.compile cannot take an op that "
    "returns an alias of an argument; return `()` and let the caller use the argument",
    "namespace": "schema `aten::bad(Tensor self) -> Tensor`: write the op's name without a "
    "namespace: it is always custom_pypto at column 6, before `:bad(Tensor self) -> Ten`",
    "kernel_twice": "bad: two CPU kernels are registered",
    "shared_kernel": "bad_too: the CPU kernel is a kernel of `bad` too; give each op a function of "
    "its own, by which errors name the op and its arguments",
    "throws": "the author's own reason",
    "throws_an_int": "registration threw something that is no std::exception",
}


@pytest.mark.parametrize("case", REFUSALS)
def test_refusal_says_why(libraries: dict[str, Library], case: str) -> None:
    code, error = libraries["refused"].call("try_registration", case.encode())
    assert (code, error) == (1, REFUSALS[case])


@pytest.mark.parametrize(
    ("case", "start"),
    [
        ("unknown_type", "bad: torch refused the schema `bad(Tensr self) -> Tensor`: "),
        ("dispatch_key", "bad: torch has no dispatch key `Abacus` for kernels: "),
    ],
)
def test_refusal_by_torch_gives_torchs_reason(
    libraries: dict[str, Library], case: str, start: str
) -> None:
    _, error = libraries["refused"].call("try_registration", case.encode())
    assert error.startswith(start)
    assert {"unknown_type": "Tensr", "dispatch_key": "Abacus"}[case] in error[len(start) :]


@pytest.mark.parametrize("case", REFUSALS)
def test_refusal_leaves_nothing_registered(libraries: dict[str, Library], case: str) -> None:
    libraries["refused"].call("try_registration", case.encode())
    assert not has_op("bad")
    assert libraries["refused"].call("try_registration", b"none") == (0, "")


@pytest.mark.parametrize(("size", "text"), [(1, ""), (2, ""), (3, "é"), (6, "éé"), (7, "ééé")])
def test_error_is_cut_between_characters(
    libraries: dict[str, Library], size: int, text: str
) -> None:
    assert libraries["refused"].call("try_registration", b"wide_text", size=size) == (1, text)


def test_error_may_be_unwanted(libraries: dict[str, Library]) -> None:
    assert libraries["refused"].handle.try_registration(b"throws", None, ctypes.c_size_t(0)) == 1


# --- schemas ---


@pytest.mark.parametrize(
    ("schema", "parsed"),
    [
        ("f() -> ()", "f|"),
        ("f.out(Tensor x) -> Tensor", "f|out\nx: Tensor\n-> Tensor "),
        ("f(Tensor(a!)? x=None) -> ()", "f|\nx: Tensor? alias a! = None"),
        ("f(Tensor(a!)[] x) -> ()", "f|\nx: Tensor[] alias a!"),
        ("f(Tensor(a! -> *) x) -> ()", "f|\nx: Tensor alias a! -> *"),
        ("f(int[2] x=[1, 2], *, int[]? y) -> ()", "f|\nx: int[] = [1, 2]\ny: int[]? keyword"),
        ("f(SymInt n, SymInt[3] m) -> ()", "f|\nn: int\nm: int[]"),
        (
            "f(*, str s=',)\\'', float e=1e-5) -> ()",
            "f|\ns: str keyword = ',)\\''\ne: float keyword = 1e-5",
        ),
        ("f(Tensor x) -> (Tensor y, Tensor?)", "f|\nx: Tensor\n-> Tensor y\n-> Tensor? "),
        (
            "  f (\n Tensor x ,Tensor?[] y )->Tensor [] ",
            "f|\nx: Tensor\ny: Tensor?[]\n-> Tensor[] ",
        ),
    ],
)
def test_schema_is_read(libraries: dict[str, Library], schema: str, parsed: str) -> None:
    assert libraries["refused"].call("read_schema", schema.encode())[1] == parsed


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ("", "expected an op name at column 1, where it ends"),
        ("f", "expected `(` at column 2, where it ends"),
        ("f(Tensor x)", "expected `->` and the returns at column 12, where it ends"),
        ("f(Tensor) -> ()", "expected an argument name at column 9, before `) -> ()`"),
        ("f(Tensor x, ) -> ()", "expected a type at column 13, before `) -> ()`"),
        ("f(Tensor x -> ()", "expected `)` at column 12, before `-> ()`"),
        ("f(Tensor() x) -> ()", "expected an alias annotation such as `a!` at column 10"),
        ("f(int k=) -> ()", "expected a default value at column 9"),
        ("f(str s='x) -> ()", "a quoted default value does not end at column 18, where it ends"),
        ("f(*, int a, *, int b) -> ()", "`*` stands twice"),
        ("f(Tensor x) -> Tensor Tensor", "expected the end at column 23, before `Tensor`"),
        ("f.(Tensor x) -> ()", "expected an overload name at column 3"),
        ("f(int[ x) -> ()", "expected `]`"),
    ],
)
def test_text_that_is_no_schema_is_refused_with_the_place(
    libraries: dict[str, Library], schema: str, problem: str
) -> None:
    error = libraries["refused"].call("read_schema", schema.encode())[1]
    assert error.startswith(f"schema `{schema}`: {problem}")


# --- values ---


def test_plain_values_reach_the_kernel(types: Library) -> None:
    shown = ops.headers_values(
        torch.ones(2, 3), -(2**62), 0.5, True, "é", "", dtype=torch.bfloat16, device="meta"
    )
    assert shown == f"float32[2, 3] {-(2**62)} 0.5 true é  bfloat16 meta "


def test_optionals_reach_the_kernel_with_values(types: Library) -> None:
    shown = ops.headers_optionals(
        torch.ones(2), 3, 0.5, False, "s", "view", torch.int8, torch.device("cpu"), [4, 5]
    )
    assert shown == "float32[2] 3 0.5 false s view int8 cpu [4, 5] "


def test_optionals_reach_the_kernel_without_values(types: Library) -> None:
    assert ops.headers_optionals() == "None " * 9


def test_lists_reach_the_kernel(types: Library) -> None:
    t = torch.ones(2)
    shown = ops.headers_lists([t, t.int()], [1, 2], [0.5, -1.0], [True, False], [None, t])
    assert shown == "[float32[2], int32[2]] [1, 2] [0.5, -1] [true, false] [None, float32[2]] "


def test_views_of_lists_reach_the_kernel(types: Library) -> None:
    shown = ops.headers_views([torch.ones(2)], [1, 2, 3], [0.5], [False, True])
    assert shown == "[float32[2]] [1, 2, 3] [0.5] [false, true] "


def test_empty_lists_reach_the_kernel(types: Library) -> None:
    t = torch.ones(1)
    with pytest.raises(RuntimeError):  # nothing to dispatch on
        ops.headers_views([], [], [], [])
    assert ops.headers_views([t], [], [], []) == "[float32[1]] [] [] [] "


def test_tuple_of_all_types_is_returned(types: Library) -> None:
    t = torch.arange(3)
    out, pair, i, f, b, maybe, ints = ops.headers_many(t, True)
    assert all(torch.equal(each, t) for each in (out, *pair, maybe))
    assert (len(pair), i, f, b, ints) == (2, 2**40, 0.5, True, [3, 4])


def test_none_is_returned(types: Library) -> None:
    assert ops.headers_many(torch.arange(3), False)[5] is None


def test_tuple_of_one_is_a_single_return(types: Library) -> None:
    assert torch.equal(ops.headers_single(torch.arange(3)), torch.arange(3))


def references_left(call: Callable[..., Any]) -> list[int]:
    """References that a `call` that raises leaves on the memory of the four tensors it gets."""
    arrays = [np.ones(2, dtype=np.float32) for _ in range(4)]
    before = [sys.getrefcount(arrays[i]) for i in range(4)]
    a, b, c, d = map(torch.from_numpy, arrays)
    with pytest.raises(RuntimeError):
        call(a, b, c, d)
    held = [sys.getrefcount(arrays[i]) - before[i] for i in range(4)]
    assert held == [1] * 4
    del a, b, c, d
    gc.collect()
    return [sys.getrefcount(arrays[i]) - before[i] for i in range(4)]


def test_kernel_that_throws_leaks_no_argument(types: Library) -> None:
    assert references_left(lambda a, b, c, d: ops.headers_refuse(a, [b, c], d)) == [0] * 4


def test_argument_that_cannot_be_converted_leaks_no_other(types: Library) -> None:
    unknown = torch.float8_e8m0fnu  # not in the stable ABI of 2.10
    call = ops.headers_refuse_dtype
    assert references_left(lambda a, b, c, d: call(a, unknown, b, [c], d, "text")) == [0] * 4


def test_strings_are_freed(types: Library) -> None:
    text = "x" * 2**20
    ops.headers_strings(text, text)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(200):
        assert ops.headers_strings(text, text) == 2 * len(text)
    # KiB; one leaked copy a call would be 200 MiB.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50 * 1024


# --- errors ---

REFUSED = "headers_refuse: argument 'x' hélas ✓"


def test_error_of_a_kernel_is_a_runtime_error_with_its_text(types: Library) -> None:
    with pytest.raises(RuntimeError) as caught:
        ops.headers_refuse(torch.ones(1), [], None)
    assert (type(caught.value), str(caught.value)) == (RuntimeError, REFUSED)


def test_error_of_a_kernel_keeps_its_text_in_a_compiled_function(types: Library) -> None:
    torch._dynamo.reset()
    with torch.library._scoped_library("custom_pypto", "FRAGMENT") as lib:
        torch.library.register_fake(
            "custom_pypto::headers_refuse", lambda x, y, z: x.clone(), lib=lib
        )
        compiled = torch.compile(
            lambda x: ops.headers_refuse(x, [x], None) + 1, backend="aot_eager", fullgraph=True
        )
        with pytest.raises(RuntimeError) as caught:
            compiled(torch.ones(2))
    assert str(caught.value) == REFUSED


def test_none_for_a_tensor_is_refused_by_its_name(types: Library) -> None:
    t = torch.ones(1)
    for a, b, name in ((None, t, "a"), (t, None, "b")):
        with pytest.raises(RuntimeError) as caught:
            ops.headers_refuse_dtype(a, torch.float32, b, [], None, "")
        assert str(caught.value) == (
            f"headers_refuse_dtype: argument '{name}' must be a tensor, got None"
        )


def test_none_for_a_tensor_is_refused_where_a_kernel_serves_every_device(kernels: Library) -> None:
    with pytest.raises(RuntimeError, match=r"^headers_check: argument 'self' must be a tensor,"):
        ops.headers_check("rank", None, None)


def test_none_for_a_tensor_that_is_written_to_is_refused(mutation: Library) -> None:
    with pytest.raises(RuntimeError, match=r"^headers_write: argument 'x' must be a tensor, got N"):
        ops.headers_write(None, torch.ones(1))


def test_undefined_tensor_in_a_list_is_refused_by_its_index(types: Library) -> None:
    with pytest.raises(RuntimeError) as caught:
        ops.headers_call_with_undefined(torch.ones(1))
    assert str(caught.value) == (
        "custom_pypto::headers_lists: headers_lists: argument 't' must hold tensors only,"
        " got None at index 1"
    )


def test_refusal_of_none_leaks_no_other_argument(types: Library) -> None:
    call = ops.headers_refuse_dtype
    assert references_left(lambda a, b, c, d: call(a, torch.int8, None, [b, c], d, "")) == [0] * 4


# --- calls of other ops ---


def test_call_op_returns_a_tuple(types: Library) -> None:
    x = torch.tensor([3.0, 1.0, 2.0])
    values, indices = ops.headers_call_many(x, 2)
    assert (values.tolist(), indices.tolist()) == ([3.0, 2.0], [0, 2])


def test_call_op_takes_an_overload(types: Library) -> None:
    a, b = torch.randn(3, 3, generator=torch.Generator().manual_seed(0)), torch.eye(3)
    assert torch.equal(ops.headers_call_overload(a, b), a)


def test_call_op_passes_values_strings_and_optionals(types: Library) -> None:
    assert ops.headers_call_ours(torch.ones(2), None) == (
        "float32[2] 7 0.5 true lit text float16 cpu None 5 None None s None int32 None [1, 2] "
    )


def test_call_op_passes_lists(types: Library) -> None:
    assert ops.headers_call_lists(torch.ones(2)) == (
        "[float32[2], float32[2]] [1, 2] [0.5] [true, false] [None, float32[2]] "
    )


def test_call_op_gives_torchs_reason(types: Library) -> None:
    with pytest.raises(RuntimeError) as caught:
        ops.headers_call_overload(torch.ones(2, 3), torch.ones(2, 3))
    assert str(caught.value).startswith("aten::mm.out: mat1 and mat2 shapes cannot be multiplied")


def test_call_op_of_a_missing_op_names_it(types: Library) -> None:
    with pytest.raises(RuntimeError, match=r"^custom_pypto::nowhere: Could not find schema for"):
        ops.headers_call_void(torch.ones(1), "custom_pypto::nowhere")


# --- mutation ---


def test_written_arguments_get_a_new_version(mutation: Library) -> None:
    x, read, maybe, one, two = (torch.ones(2) for _ in range(5))
    ops.headers_write(x, read, maybe=maybe, list=[one, two])
    assert [t._version for t in (x, read, maybe, one, two)] == [1, 0, 1, 1, 1]


def test_written_arguments_are_written(mutation: Library) -> None:
    x, maybe = torch.ones(2), torch.ones(2)
    out = ops.headers_write(x, torch.full((2,), 3.0), maybe=maybe)
    assert [t.tolist() for t in (x, maybe, out)] == [[-1.0, -1.0], [-1.0, -1.0], [-3.0, -3.0]]


def test_absent_written_argument_is_left_out(mutation: Library) -> None:
    x = torch.ones(2)
    ops.headers_write(x, torch.ones(2))
    assert x._version == 1


def test_written_view_bumps_its_base(mutation: Library) -> None:
    base = torch.ones(4, 2)
    ops.headers_write(base[1], torch.ones(2))
    assert base._version == 1


def test_scalar_tensor_gets_a_new_version(mutation: Library) -> None:
    x = torch.tensor(2.0)
    ops.headers_write(x, torch.tensor(1.0))
    assert (x._version, x.item()) == (1, -2.0)


def test_strides_survive_the_bump(mutation: Library) -> None:
    x = torch.ones(3, 2, 4).permute(2, 0, 1)
    ops.headers_write_by_hand(x)
    assert (x.shape, x.stride(), x._version) == ((4, 3, 2), (1, 8, 4), 1)


def test_composite_kernel_is_left_to_the_ops_it_calls(mutation: Library) -> None:
    x = torch.ones(2)
    ops.headers_write_composite(x)
    assert x._version == 0


def test_backward_refuses_a_saved_tensor_that_was_written(mutation: Library) -> None:
    weight = torch.ones(2, requires_grad=True)
    cache = torch.full((2,), 3.0)
    loss = (weight * cache).sum()
    ops.headers_write(cache, torch.ones(2))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()  # type: ignore[no-untyped-call]


def test_backward_after_a_write_to_something_else(mutation: Library) -> None:
    weight = torch.ones(2, requires_grad=True)
    loss = (weight * torch.full((2,), 3.0)).sum()
    ops.headers_write(torch.ones(2), torch.ones(2))
    loss.backward()  # type: ignore[no-untyped-call]
    assert weight.grad is not None
    assert weight.grad.tolist() == [3.0, 3.0]


ADVICE = " Call the op under torch.no_grad() or pass a detached tensor."


def test_leaf_that_requires_grad_is_refused_by_name(mutation: Library) -> None:
    leaf = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError) as caught:
        ops.headers_write(torch.ones(2), torch.ones(2), maybe=leaf)
    assert str(caught.value) == (
        "headers_write: argument 'maybe' is written in place, which torch refuses: a leaf Variable "
        "that requires grad is being used in an in-place operation." + ADVICE
    )


def test_result_that_requires_grad_is_refused_by_name(mutation: Library) -> None:
    result = torch.ones(2, requires_grad=True) * 2
    with pytest.raises(RuntimeError) as caught:
        ops.headers_write(torch.ones(2), torch.ones(2), list=[torch.ones(2), result])
    assert str(caught.value) == (
        "headers_write: argument 'list' is written in place, but it requires grad and an op that "
        "writes to an argument has no gradient." + ADVICE
    )


def test_refused_write_has_written_nothing(mutation: Library) -> None:
    x, leaf = torch.ones(2), torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError):
        ops.headers_write(x, torch.ones(2), maybe=leaf)
    assert (x.tolist(), leaf.tolist()) == ([1.0, 1.0], [1.0, 1.0])


@pytest.mark.parametrize("derived", [False, True])
def test_tensor_that_requires_grad_may_be_written_without_grad_mode(
    mutation: Library, derived: bool
) -> None:
    x = torch.ones(2, requires_grad=True)
    x = x * 1 if derived else x
    with torch.no_grad():
        ops.headers_write(x, torch.ones(2))
    assert (x.tolist(), x._version, x.requires_grad) == ([-1.0, -1.0], 1, True)


def test_argument_that_is_only_read_may_require_grad(mutation: Library) -> None:
    x = torch.ones(2)
    ops.headers_write(x, torch.ones(2, requires_grad=True))
    assert x._version == 1


def test_inference_mode_writes_tensors_of_both_kinds(mutation: Library) -> None:
    normal = torch.ones(2)
    with torch.inference_mode():
        inference = torch.ones(2)
        ops.headers_write(normal, inference)
        ops.headers_write(inference, normal)
    assert (normal.tolist(), inference.tolist(), normal._version) == ([-1.0] * 2, [-1.0] * 2, 1)


def test_inference_tensor_is_refused_outside_inference_mode(mutation: Library) -> None:
    with torch.inference_mode():
        inference = torch.ones(2)
    with pytest.raises(RuntimeError) as caught:
        ops.headers_write(inference, torch.ones(2))
    assert str(caught.value).startswith(
        "headers_write: argument 'x' is written in place, which torch refuses: Inplace update to "
        "inference tensor outside InferenceMode is not allowed"
    )
    assert ADVICE not in str(caught.value)


def test_kernel_that_throws_has_bumped_the_version(mutation: Library) -> None:
    x = torch.ones(2)
    with pytest.raises(RuntimeError, match=r"^headers_write_fails: on purpose$"):
        ops.headers_write_fails(x)
    assert x._version == 1


def test_bump_version_by_hand(mutation: Library) -> None:
    x = torch.ones(2)
    ops.headers_write_by_hand(x)
    assert (x._version, x.tolist()) == (1, [-1.0, -1.0])


def fake_write(
    x: torch.Tensor,
    read: torch.Tensor,
    *,
    maybe: torch.Tensor | None = None,
    list: list[torch.Tensor] | None = None,  # noqa: A002
) -> torch.Tensor:
    return torch.empty_like(x)


def test_compiled_function_writes_what_the_op_writes(mutation: Library) -> None:
    def step(x: torch.Tensor, cache: torch.Tensor) -> torch.Tensor:
        y = x * 2
        first = ops.headers_write(y, x, maybe=cache)
        second = ops.headers_write(cache, y)
        result: torch.Tensor = first + second + y
        return result

    torch._dynamo.reset()
    x, cache = torch.arange(4.0), torch.arange(4.0) + 10
    expected_cache = cache.clone()
    expected = step(x, expected_cache)
    with torch.library._scoped_library("custom_pypto", "FRAGMENT") as lib:
        torch.library.register_fake("custom_pypto::headers_write", fake_write, lib=lib)
        result = torch.compile(step, backend="aot_eager", fullgraph=True)(x, cache)
    assert torch.equal(result, expected)
    assert torch.equal(cache, expected_cache)
    assert x._version == 0


# --- checks ---

CHECKS = {
    "rank": "argument 'self' must be 3-D, got 2-D [2, 3]",
    "rank_with_meaning": "argument 'self' must be 3-D ([T, N, D] for layout 'TND'), got 2-D [2, 3]",
    "ranks": "argument 'self' must be 1-D, 3-D or 4-D, got 2-D [2, 3]",
    "dtype": "argument 'self' must be float16, got float32",
    "dtypes": "argument 'self' must be float16, bfloat16 or int64, got float32",
    "same_dtype": "argument 'other' must have the dtype of 'self' (float32), got float64",
    "same_device": "argument 'other' must be on the device of 'self' (cpu), got meta",
    "same_shape": "argument 'other' must have the shape of 'self' [2, 3], got [3]",
    "size": "argument 'self' must have size 128 in dimension -1 (the head size), got 3 in [2, 3]",
    "size_of_no_dimension": "argument 'self' must have a dimension 2 (the head size), got 2-D "
    "[2, 3]",
    "shape": "argument 'self' must have shape [2, *, 4], got [2, 3]",
    "contiguous": "argument 'self' must be contiguous, got shape [2, 3] with strides [1, 2]",
    "at_least": "argument 'k' must be at least 1, got 0",
    "at_most": "argument 'k' must be at most -1, got 0",
    "in_range": "argument 'k' must be between 1 and 8, got 0",
    "one_of_ints": "argument 'k' must be 3 or 4, got 0",
    "float": "argument 'scale' must be at least 0.25, got nan",
    "one_of": "argument 'layout' must be 'BSND' or 'TND', got 'NTD'",
    "fail": "argument 'self' odd: float32[2, 3] NTD true",
    "fail_op": "has no [2, 3]",
    "check": "argument 'k' must be odd, got 0",
    "visit": "argument 'self' must be float16 or bfloat16, got float32",
}


@pytest.mark.parametrize("case", CHECKS)
def test_check_that_fails_says_what_was_given_and_what_is_allowed(
    kernels: Library, case: str
) -> None:
    x = torch.ones(3, 2).t()
    other = torch.ones(3, dtype=torch.float64, device="meta")
    with pytest.raises(RuntimeError) as caught:
        ops.headers_check(case, x, other, 0, float("nan"), "NTD")
    assert str(caught.value) == f"headers_check: {CHECKS[case]}"


PASSING = ("same_dtype", "same_device", "same_shape", "contiguous", "at_least", "in_range")


@pytest.mark.parametrize("case", [*PASSING, "one_of_ints", "one_of", "float", "check", "chain"])
def test_check_that_holds_is_silent(kernels: Library, case: str) -> None:
    x = torch.ones(2, 3)
    assert ops.headers_check(case, x, x + 1, 3, 0.25, "TND") is None


# --- dtypes and allocation ---

DTYPES = {
    torch.float32: 4,
    torch.float64: 8,
    torch.float16: 2,
    torch.bfloat16: 2,
    torch.int8: 1,
    torch.uint8: 1,
    torch.int16: 2,
    torch.int32: 4,
    torch.int64: 8,
    torch.bool: 1,
}


@pytest.mark.parametrize(("dtype", "size"), DTYPES.items())
def test_visit_dtype_finds_the_type(kernels: Library, dtype: torch.dtype, size: int) -> None:
    assert ops.headers_element_size(torch.ones(1, dtype=dtype)) == size


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (5,), (2, 3, 4), (2, 0, 3), (1, 7, 1)])
def test_empty_is_like_torch_empty(
    kernels: Library, shape: tuple[int, ...], dtype: torch.dtype
) -> None:
    made = ops.headers_make(shape, dtype, torch.device("cpu"))
    expected = torch.empty(shape, dtype=dtype)
    assert (made.shape, made.stride(), made.dtype, made.device, made.is_contiguous()) == (
        expected.shape,
        expected.stride(),
        dtype,
        expected.device,
        True,
    )


def test_empty_takes_the_device(kernels: Library) -> None:
    assert ops.headers_make([2], torch.float16, "meta").device.type == "meta"


def test_empty_that_cannot_be_allocated_says_why(kernels: Library) -> None:
    with pytest.raises(RuntimeError) as caught:
        ops.headers_make([2, -3], torch.float32, "cpu")
    assert str(caught.value).startswith(
        "custom_pypto::empty: argument 'sizes' [2, -3] cannot be allocated: "
    )


def test_empty_whose_strides_overflow_says_so(kernels: Library) -> None:
    with pytest.raises(RuntimeError, match="cannot be allocated: its strides do not fit 64 bits"):
        ops.headers_make([3, 2**40, 2**40], torch.float32, "cpu")


def test_empty_has_a_largest_rank(kernels: Library) -> None:
    assert ops.headers_make([1] * 64, torch.float32, "cpu").dim() == 64
    with pytest.raises(RuntimeError, match="must have at most 64 dimensions, got 65"):
        ops.headers_make([1] * 65, torch.float32, "cpu")


@pytest.mark.skipif(
    not Path("/sys/kernel/mm/transparent_hugepage").exists(), reason="Linux without huge pages"
)
def test_large_results_ask_for_huge_pages(kernels: Library) -> None:
    large = ops.headers_make([16, 2**20], torch.uint8, "cpu")
    assert "hg" in _flags_of_mapping(large.data_ptr() + large.numel() // 2)
    assert torch.equal(large.fill_(7), torch.full((16, 2**20), 7, dtype=torch.uint8))


def _flags_of_mapping(address: int) -> list[str]:
    """Return the kernel's flags of the mapping that holds an address of this process."""
    inside = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        bounds = re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line)
        if bounds is not None:
            inside = int(bounds[1], 16) <= address < int(bounds[2], 16)
        elif inside and line.startswith("VmFlags:"):
            return line.split()[1:]
    raise AssertionError(f"no mapping holds {address:#x}")


def test_empty_like_follows_the_tensor(kernels: Library) -> None:
    like = torch.ones(3, 2, dtype=torch.bfloat16).t()
    same, rows, ints = ops.headers_make_like(like)
    assert (same.shape, same.stride(), same.dtype) == ((2, 3), (3, 1), torch.bfloat16)
    assert (rows.shape, rows.dtype) == ((6, 2), torch.bfloat16)
    assert (ints.shape, ints.dtype) == ((6, 2), torch.int32)


def test_tensor_made_in_inference_mode_is_an_inference_tensor(kernels: Library) -> None:
    with torch.inference_mode():
        assert ops.headers_make([2], torch.float32, "cpu").is_inference()


# --- parallel loop ---


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("grain", [0, 1, 3, 1000])
@pytest.mark.parametrize("shape", [(1, 100), (100, 1), (7, 13)])
def test_nested_loops_visit_every_index_once(
    kernels: Library, two_threads: None, shape: tuple[int, int], grain: int
) -> None:
    assert torch.equal(ops.headers_visits(*shape, grain), torch.ones(shape, dtype=torch.int32))


def test_loop_over_nothing(kernels: Library) -> None:
    assert ops.headers_visits(0, 5, 1).shape == (0, 5)


@pytest.mark.parametrize("at", [0, 31, 63])
def test_exception_in_a_loop_reaches_the_caller_with_its_type(
    kernels: Library, two_threads: None, at: int
) -> None:
    with pytest.raises(IndexError, match=rf"^headers_throw_in_loop: row {at}$"):
        ops.headers_throw_in_loop(at)


def test_loop_runs_after_one_that_threw(kernels: Library, two_threads: None) -> None:
    with pytest.raises(IndexError):
        ops.headers_throw_in_loop(5)
    assert int(ops.headers_visits(8, 8, 1).sum()) == 64


def test_num_threads_is_torchs(kernels: Library, two_threads: None) -> None:
    assert ops.headers_threads() == 2
