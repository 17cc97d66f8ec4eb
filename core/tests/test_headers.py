"""The C++ headers themselves: each alone, for newer languages and torches, and what they refuse."""

import re
from pathlib import Path

import pytest
from cpp_library import (
    BLOCKS,
    HIDDEN,
    INCLUDE,
    SOURCES,
    Library,
    build,
    compile_command,
    compile_library,
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


@pytest.mark.parametrize("order", [HEADERS, HEADERS[::-1]], ids=["forwards", "backwards"])
def test_headers_compile_in_any_order_and_twice(tmp_path: Path, order: list[str]) -> None:
    """Each header includes the headers of ours that it needs; the next test looks at torch's."""
    assert {"custom_pypto/plugin.h", "custom_pypto_blocks/npu/tensor_ops.h"} <= set(HEADERS)
    source = tmp_path / "headers.cpp"
    source.write_text("".join(f"#include <{header}>\n" for header in 2 * order))
    run(compile_command("-fsyntax-only", source))


@pytest.mark.parametrize("header", HEADERS)
def test_header_includes_torch_if_it_names_that_and_npu_only_from_npu(header: str) -> None:
    code = re.sub(r"//.*", "", text_of(header))
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


CHOICE = """
#include <custom_pypto/npu/launch.h>
const custom_pypto::npu::KernelChoice choice("op", {"launched"});
bool has_kernel() { return choice.try_get() != nullptr; }
"""


def test_a_library_without_launches_reports_its_choices_alone(tmp_path: Path) -> None:
    source = tmp_path / "choice.cpp"
    source.write_text(CHOICE)
    library = Library(compile_library(source, tmp_path / "choice.so", "-O2", *HIDDEN))
    defined = " ".join(library.symbols("--defined-only"))
    assert re.findall("custom_pypto_npu_.*?_v1", defined) == [abi.NPU_KERNELS]


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


def test_kernels_of_another_type_are_one_compile_error_each_that_says_the_right_one(
    tmp_path: Path,
) -> None:
    said = [line.partition("assertion failed: ")[2] for line in errors("wrong_kernel", tmp_path)]
    assert sorted(said) == [EITHER_FORM] * 3 + [ONE_FORM]


def test_torch_target_that_is_too_old_does_not_compile(tmp_path: Path) -> None:
    older = ("-UTORCH_TARGET_VERSION", "-DTORCH_TARGET_VERSION=0x0209000000000000")
    found = errors("plugin", tmp_path, *older)
    assert "custom_pypto needs -DTORCH_TARGET_VERSION of at least 2.10" in found[0]


def test_no_object_is_shared_between_plugins_without_visibility_flags(tmp_path: Path) -> None:
    defined = Library(build("plugin", tmp_path / "visible.so")).symbols("--defined-only")
    objects = [each for each in defined if each.split(maxsplit=2)[1] in "uVvBDR"]
    assert [each for each in objects if re.search("custom_pypto::|torch::|ops::", each)] == []
