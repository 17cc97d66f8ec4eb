"""What core asks of torch_npu: documented functions that it has, and what torchair answers.

Other versions of torch_npu are for tests/symbols, which downloads them.
"""

import re
from pathlib import Path

import pytest
from libtorch_npu import exported, looked_up, package
from programs import run_program, run_python

DOCUMENT = (Path(__file__).parents[2] / "docs" / "launches.md").read_text("utf-8")


def readable(symbol: str) -> str:
    """The qualified name of a mangled function: lengths and names, before the parameters."""
    names, rest = [], symbol.removeprefix("_ZN").removeprefix("_Z")
    while length := re.match(r"\d+", rest):
        end = length.end() + int(length[0])
        names.append(rest[length.end() : end])
        rest = rest[end:]
        if not symbol.startswith("_ZN"):
            break
    return "::".join(names)


def test_the_documentation_lists_the_functions_that_the_headers_look_up() -> None:
    (section,) = re.findall(r"## What a launch uses of torch_npu\n(.*?)\n## ", DOCUMENT, re.DOTALL)
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    listed = [name for row in rows for name in re.findall(r"`([^`]+)`", row)]
    assert sorted(listed) == sorted(map(readable, looked_up()))


def test_the_installed_torch_npu_has_every_function() -> None:
    missing = looked_up() - exported(package("torch_npu") / "lib" / "libtorch_npu.so")
    assert not missing, f"torch_npu has no {sorted(missing)}"


# CANN's strings, and a graph engine with one operator.
CANN = """
#include <memory>
#include <string>
#include <vector>
#define USED __attribute__((used))
namespace ge {
struct AscendString {
  USED AscendString(const char* text) noexcept : text(new std::string(text)) {}
  USED const char* GetString() const noexcept { return text->c_str(); }
  std::shared_ptr<std::string> text;
};
}
using Named = std::vector<std::pair<ge::AscendString, ge::AscendString>>;
extern "C" unsigned GetRegisteredIrDef(const char* type, Named& inputs, Named&, Named&) {
  if (type != std::string("Known")) return -1;
  inputs.emplace_back("x", "optional");
  return 0;
}
"""
ASK = """
import importlib.util, sys
import torch
spec = importlib.util.spec_from_file_location("_torchair", sys.argv[1])
core = importlib.util.module_from_spec(spec)
spec.loader.exec_module(core)
core.InitializeGraphEngine({"ge.exec.deviceId": "0", "ge_run_with_torch_npu": "0"})
print([core.get_registered_ir_def(name) for name in ("Known", "Other")])
"""
# How CANN is compiled, and what is said of a type that it has and of one that it has not.
ANSWERS = {
    "-DGetRegisteredIrDef=Renamed": [("None", [], [], []), ("None", [], [], [])],
    "-w": [("SUCCESS", [("x", "optional")], [], []), ("ERROR", [], [], [])],
}


@pytest.mark.parametrize("flag", ANSWERS)
def test_torchair_s_own_core_answers_as_converters_read_it(tmp_path: Path, flag: str) -> None:
    core = package("torch_npu") / "dynamo" / "torchair" / "core" / "_torchair.so"
    libraries = {"LD_LIBRARY_PATH": str(package("torch") / "lib")}
    listed = run_program("ldd", "-r", core, env=libraries).stdout
    # One library for all of CANN. Its other functions return 0.
    of_strings = "_ZNK?2ge12AscendString(?:C1|9Get)"
    missing = {*re.findall(rf"undefined symbol: (?!_?Py|{of_strings})(\w+)", listed)}
    source = CANN + "".join(f'extern "C" int {name}() {{ return 0; }}\n' for name in missing)
    (tmp_path / "cann.cpp").write_text(source)
    options = ("-shared", "-fPIC", "-w", flag, "-o", tmp_path / "cann.so")
    run_program("g++", *options, tmp_path / "cann.cpp")
    for name in {*re.findall(r"(\S+) => not found", listed)}:
        (tmp_path / name).symlink_to("cann.so")
    answers = run_python("-c", ASK, core, env={"LD_LIBRARY_PATH": str(tmp_path)})
    assert answers.stdout == f"{ANSWERS[flag]}\n"
