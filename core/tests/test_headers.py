"""The C++ headers themselves: each alone, for newer languages and torches, and what they refuse."""

import re
from pathlib import Path

import pytest
from cpp_library import (
    BLOCKS,
    INCLUDE,
    SOURCES,
    Library,
    build,
    compile_command,
    errors,
    run,
    write_header,
)
from custom_pypto_contract import abi

# Those for one instruction set are tested by compiling for it.
HEADERS = sorted(
    str(path.relative_to(include))
    for include in (INCLUDE, BLOCKS)
    for folder in ("*", "*/npu")
    for path in include.glob(f"{folder}/*.h")
)
# Names of the standard library whose header has another name.
STANDARD = {
    "algorithm": "copy equal find max min sort transform any_of all_of fill",
    "cctype": "isspace",
    "cstddef": "size_t",
    "cstdint": "uintptr_t",
    "cstdio": "snprintf",
    "cstdlib": "getenv free",
    "cstring": "memcpy",
    "exception": "exception exception_ptr current_exception rethrow_exception",
    "fstream": "ifstream",
    "functional": "function",
    "initializer_list": "initializer_list",
    "memory": "unique_ptr make_unique shared_ptr make_shared default_delete",
    "mutex": "mutex lock_guard",
    "optional": "optional nullopt nullopt_t",
    "sstream": "ostringstream",
    "stdexcept": "runtime_error logic_error",
    "string": "string to_string stoll getline",
    "tuple": "tuple apply tuple_size_v",
    "type_traits": "is_same_v conditional_t remove_cv_t void_t enable_if_t is_convertible_v",
    "utility": "move exchange swap index_sequence index_sequence_for in_place",
    "variant": "variant visit",
}
NAMES = {name: header for header, names in STANDARD.items() for name in names.split()}
# A name that is its header's, or one of NAMES.
KNOWN = {*STANDARD, "array", "atomic", "ostream", "string_view", "vector"}


@pytest.mark.parametrize("order", [HEADERS, HEADERS[::-1]], ids=["forwards", "backwards"])
def test_headers_compile_in_any_order_and_twice(tmp_path: Path, order: list[str]) -> None:
    """Each header includes the headers of ours that it needs; the next test looks at the others."""
    assert {"custom_pypto/plugin.h", "custom_pypto_blocks/npu/tensor_ops.h"} <= set(HEADERS)
    source = tmp_path / "headers.cpp"
    source.write_text("".join(f"#include <{header}>\n" for header in 2 * order))
    run(compile_command("-fsyntax-only", source))


@pytest.mark.parametrize("header", HEADERS)
def test_header_includes_what_it_names_of_torch_and_std_and_npu_only_from_npu(header: str) -> None:
    code = re.sub(r"//.*", "", text_of(header))
    names = {NAMES.get(name, name) for name in re.findall(r"\bstd::(\w+)", code)}
    assert names & KNOWN <= set(re.findall(r"#include <(.*)>", code))
    included = all_included(header)
    if re.search(r"\btorch::|\baoti_torch_|\bStableIValue\b|\bAtenTensorHandle\b", code):
        assert any(each.startswith("torch/") for each in included)
    assert "/npu/" in header or not any("/npu/" in each for each in included)


def text_of(header: str) -> str:
    return (INCLUDE if header.startswith("custom_pypto/") else BLOCKS).joinpath(header).read_text()


def all_included(header: str) -> set[str]:
    """Return what a header includes, itself or by headers of ours."""
    found: set[str] = set()
    left = [header]
    while left:
        new = set(re.findall(r"#include <(.*)>", text_of(left.pop()))) - found
        found |= new
        left += [each for each in new if each.startswith("custom_pypto")]
    return found


def test_headers_compile_as_cpp20_for_a_newer_torch(tmp_path: Path) -> None:
    newer = ("-std=c++20", "-UTORCH_TARGET_VERSION", "-DTORCH_TARGET_VERSION=0x020d000000000000")
    include = f"-I{write_header(SOURCES / 'types.toml', tmp_path)}"
    run(compile_command("-fsyntax-only", *newer, include, SOURCES / "types.cpp"))


def test_abi_version_is_the_one_of_the_manifest() -> None:
    text = (INCLUDE / "custom_pypto" / "abi.h").read_text()
    version = re.findall(r"#define CUSTOM_PYPTO_ABI_(?:MAJOR|MINOR) (\d+)", text)
    assert tuple(map(int, version)) == abi.CORE_ABI


EITHER_FORM = (
    "custom_pypto: a kernel of an op in ops.h is void(const Arguments&, const CallShape&, "
    "const Outputs&), or Outputs(const Arguments&, const CallShape&)"
)
ONE_FORM = (
    "custom_pypto: ops.toml does not say what this op's outputs are, so its kernel is "
    "Outputs(const Arguments&, const CallShape&)"
)


@pytest.mark.parametrize(
    ("op", "kernel", "reason"),
    [
        ("scaled", "with_values", EITHER_FORM),
        ("scaled", "with_others", EITHER_FORM),
        ("scaled", "returns_a_tensor", EITHER_FORM),
        ("made", "fills", ONE_FORM),
    ],
)
def test_kernel_of_another_type_is_one_compile_error_that_says_the_right_one(
    tmp_path: Path, op: str, kernel: str, reason: str
) -> None:
    found = errors("wrong_kernel", tmp_path, f"-DOP={op}", f"-DKERNEL={kernel}")
    assert len(found) == 1
    assert found[0].endswith(reason)


def test_torch_target_that_is_too_old_does_not_compile(tmp_path: Path) -> None:
    older = ("-UTORCH_TARGET_VERSION", "-DTORCH_TARGET_VERSION=0x0209000000000000")
    found = errors("plugin", tmp_path, *older)
    assert "custom_pypto needs -DTORCH_TARGET_VERSION of at least 2.10" in found[0]


def test_no_object_is_shared_between_plugins_without_visibility_flags(tmp_path: Path) -> None:
    visible = Library(build("plugin", tmp_path / "visible.so"))
    defined = visible.symbols("--defined-only")
    objects = [each for each in defined if each.split(maxsplit=2)[1] in "uVvBDR"]
    assert [each for each in objects if re.search("custom_pypto::|torch::|ops::", each)] == []
