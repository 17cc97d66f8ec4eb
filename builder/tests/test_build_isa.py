"""Kernels that are compiled once for each instruction set, and the choice among them."""

import json
import re
import shlex
from pathlib import Path

import pytest
from build_project import PLUGIN_CPP, SOURCES, BuildFailedError, Project, tiny_project
from custom_pypto_build import compiler
from custom_pypto_build.settings import ISA_KINDS
from custom_pypto_contract import platforms
from programs import run_python

MACHINE = platforms.machine(platforms.platform_tag())
KINDS = ("any", *ISA_KINDS)


def listed_isas(machine: str) -> list[tuple[str, str]]:
    """The kind and the name of each instruction set in isa.h, in its order."""
    header = (compiler.core_include() / "custom_pypto/cpu/isa.h").read_text(encoding="utf-8")
    listed = re.search(rf"define CUSTOM_PYPTO_{machine.upper()}_ISAS\(([^#]*)", header)
    found = re.findall(rf"({'|'.join(KINDS)})\((\w+), ", listed[1] if listed else "")
    return [("any", "portable"), *found]


ISAS = compiler.isa_flags(MACHINE)
ALL_ISAS = [name for _, name in listed_isas(MACHINE)]
TABLE = SOURCES + '[tool.custom-pypto.isa]\nsources = ["csrc/kernels.cpp"]\n'
HEADER = """
#include <custom_pypto/cpu/kernel_table.h>
namespace tiny {
struct Kernels { const char* (*name)(); };
CUSTOM_PYPTO_KERNELS(Kernels, kernels)
}
"""
KERNELS = """
#include "kernels.h"
#define QUOTE_(x) #x
#define QUOTE(x) QUOTE_(x)
namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA {
namespace {
const char* name() { return QUOTE(CUSTOM_PYPTO_CPU_ISA); }
}
}
namespace isa = custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA;
constexpr tiny::Kernels tiny::CUSTOM_PYPTO_OF_ISA(kernels) = {&isa::name};
"""
CALLER = """
#include <custom_pypto/current_isa.h>
#include <cstdio>
#include "kernels.h"
EXPORT const char* custom_pypto_test_name() {
  static char text[1000];
  try {
    return tiny::kernels().name();
  } catch (const std::runtime_error& error) {
    std::snprintf(text, sizeof text, "%s", error.what());
    return text;
  }
}
"""
ASK = """
import ctypes, json, sys
library = ctypes.CDLL(sys.argv[1])
answers = []
for function in (library.custom_pypto_test_name, library.custom_pypto_cpu_isa_v1):
    function.restype = ctypes.c_char_p
    answers.append((function() or b"").decode())
print(json.dumps(answers))
"""


def built(root: Path, table: str, header: str, kernels: str) -> Project:
    made = tiny_project(root, table)
    made.write("csrc/kernels.h", header)
    made.write("csrc/kernels.cpp", kernels)
    made.write("csrc/tiny.cpp", PLUGIN_CPP + CALLER)
    made.wheel()
    return made


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    own_flag = KERNELS + "static_assert(OWN == 1);\n"
    table = TABLE + 'cxx-flags = ["-DOWN=1"]\n'
    return built(tmp_path_factory.mktemp("isa"), table, HEADER, own_flag)


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Project:
    table = TABLE.replace("]\nsources", "]\nbf16-sources")
    table += 'int8-sources = ["csrc/kernels.cpp"]\n'
    header = HEADER.replace("CUSTOM_PYPTO_K", "CUSTOM_PYPTO_BF16_INT8_K")
    return built(tmp_path_factory.mktemp("wide"), table, header, KERNELS)


def loaded(project: Project, forced: str) -> tuple[str, str]:
    """The name of the kernels that the library uses, and the ISA that it reports to core."""
    [library] = project.root.glob("build/custom-pypto/*/*.so")
    done = run_python("-c", ASK, library, env={"CUSTOM_PYPTO_CPU_ISA": forced})
    name, reported = json.loads(done.stdout)
    return name, reported


def test_a_source_is_compiled_for_each_instruction_set_with_its_flags(
    project: Project, wide: Project
) -> None:
    further = compiler.isa_flags(MACHINE, ISA_KINDS)
    assert len(further) > len(ISAS)
    for made, isas, own in ((project, ISAS, ["-DOWN=1"]), (wide, further, [])):
        commands = made.compile_commands()
        assert commands.count("compile csrc/kernels.cpp") == len(isas)
        for isa, flags in isas.items():
            assert f"  flags = {shlex.join([*flags, *own])}\n" in commands
            assert f"compile csrc/kernels.cpp for {isa}" in made.built()


@pytest.mark.parametrize("machine", ["x86_64", "aarch64", "riscv64"])
def test_the_header_lists_what_is_compiled(machine: str) -> None:
    for kind in KINDS:
        listed = [name for its_kind, name in listed_isas(machine) if its_kind in ("any", kind)]
        assert listed == list(compiler.isa_flags(machine, {kind} & {*ISA_KINDS}))


@pytest.mark.parametrize("isa", ALL_ISAS)
def test_the_forced_one_is_used_or_refused(project: Project, wide: Project, isa: str) -> None:
    name, reported = loaded(wide, isa)
    if name == isa:
        assert reported == isa
        ordinary = [each for each in ALL_ISAS[: ALL_ISAS.index(isa) + 1] if each in ISAS][-1]
        assert loaded(project, isa) == (ordinary, ordinary)
    else:
        refusal = (
            f"CUSTOM_PYPTO_CPU_ISA='{isa}' is an instruction set that this machine lacks; this"
        )
        assert name.startswith(f"{refusal} machine has: portable")
        assert reported == ""
        assert loaded(project, isa) == (name, "")


def test_the_best_one_is_used_where_none_is_forced(project: Project, wide: Project) -> None:
    for made in (project, wide):
        available = [isa for isa in ALL_ISAS if loaded(made, isa)[0] == isa]
        assert loaded(made, "") == (available[-1], available[-1])


def test_a_word_that_is_none_is_refused(project: Project) -> None:
    name, reported = loaded(project, "fastest")
    assert name.startswith(
        "CUSTOM_PYPTO_CPU_ISA='fastest' is not an instruction set; this machine has"
    )
    assert reported == ""


def test_vectors_in_a_source_that_is_not_named_are_refused(tmp_path: Path) -> None:
    project = tiny_project(tmp_path, SOURCES + 'include-packages = ["custom_pypto_blocks"]\n')
    project.write("csrc/kernels.cpp", "#include <custom_pypto_blocks/cpu/vectors.h>\n")
    with pytest.raises(BuildFailedError, match=r"name this source in tool\.custom-pypto\.isa of"):
        project.wheel()
