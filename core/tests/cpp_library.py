"""Plugins of cpp/: compiled with the header of their contract, and opened by ctypes."""

import ctypes
import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import custom_pypto.core as core
import custom_pypto_blocks
import pytest
import torch
from custom_pypto.core.namespace import forget
from custom_pypto_build import ops_header
from custom_pypto_contract import ops_file
from programs import run_program

SOURCES = Path(__file__).parent / "cpp"
INCLUDE = Path(core.__file__).parent / "include"
BLOCKS = Path(custom_pypto_blocks.__file__).parent / "include"
TORCH = Path(torch.__file__).parent
HIDDEN = ("-fvisibility=hidden", "-fvisibility-inlines-hidden")


def compile_command(*arguments: str | Path) -> list[str]:
    """Return a call of the compiler; it does not optimise, which takes most of its time."""
    return [
        *shlex.split(os.environ.get("CXX", "c++")),
        *("-std=c++17", "-O0", "-fPIC", "-Wall", "-Wextra", "-Wpedantic", "-Werror"),
        "-DTORCH_TARGET_VERSION=0x020a000000000000",
        f"-I{INCLUDE}",
        f"-I{BLOCKS}",
        *("-isystem", str(TORCH / "include")),
        *map(str, arguments),
    ]


def run(command: list[str]) -> str:
    """Run `command`; return what it printed, fail the test with it when it fails."""
    done = run_program(*command)
    return done.stdout + done.stderr


def errors(name: str, folder: Path, *flags: str) -> list[str]:
    """Return the lines in which the compiler calls ``cpp/<name>.cpp`` wrong."""
    include = f"-I{write_header(SOURCES / f'{name}.toml', folder)}"
    command = compile_command("-fsyntax-only", include, *flags, SOURCES / f"{name}.cpp")
    printed = run_program(*command, status=1).stderr
    return [line for line in printed.splitlines() if "error: " in line]


def write_header(contract: Path, folder: Path) -> Path:
    """Write the ops.h of a contract into `folder`; return that."""
    header = folder / ops_header.FILE_NAME
    header.write_text(ops_header.header_text(ops_file.read(contract)), encoding="utf-8")
    return folder


def build(name: str, library: Path, *flags: str, sources: Path = SOURCES) -> Path:
    """Compile ``<name>.cpp`` with the header of ``<name>.toml``, if there is one."""
    contract = sources / f"{name}.toml"
    if contract.exists():
        generated = library.with_suffix("")
        generated.mkdir(parents=True)
        flags = (*flags, f"-I{write_header(contract, generated)}")
    return compile_library(sources / f"{name}.cpp", library, *flags)


def compile_library(source: Path, library: Path, *flags: str) -> Path:
    """Compile one source to a library of torch's stable ABI."""
    library.parent.mkdir(parents=True, exist_ok=True)
    command = compile_command(*flags, "-shared", source, "-o", library)
    run([*command, f"-L{TORCH / 'lib'}", "-ltorch_cpu", "-Wl,--no-undefined", "-ldl"])
    return library


class Library:
    """A compiled plugin, opened as core opens it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.handle = ctypes.CDLL(str(path), mode=os.RTLD_NOW | os.RTLD_LOCAL)

    def register(self, size: int = 4096) -> tuple[int, str]:
        """Call the registration function; return its code and its text."""
        return self.call("custom_pypto_register_v1", size=size)

    def unregister(self) -> None:
        """Drop the ops again."""
        # torch.ops keeps pointers to the schema of an op.
        of_plugins = {op.name.partition(".")[0] for op in core.ops()}
        forget([each for each in torch.ops.custom_pypto._dir if each not in of_plugins])
        self.handle.custom_pypto_unregister_v1()

    def call(self, function: str, *arguments: bytes, size: int = 4096) -> tuple[int, str]:
        """Call int function(arguments..., char* text, size_t size)."""
        text = ctypes.create_string_buffer(size)
        return self.handle[function](*arguments, text, ctypes.c_size_t(size)), text.value.decode()

    def symbols(self, which: str) -> list[str]:
        """Return the dynamic symbols, as nm prints them."""
        return run(["nm", "-DC", which, str(self.path)]).splitlines()


def registered(
    tmp_path_factory: pytest.TempPathFactory, name: str, sources: Path = SOURCES
) -> Iterator[Library]:
    """Compile a plugin, check its symbols and register it; drop it at the end."""
    file = tmp_path_factory.mktemp(name) / f"{name}.so"
    library = Library(build(name, file, *HIDDEN, sources=sources))
    check_symbols(library)
    assert library.register() == (0, "")
    yield library
    library.unregister()


def check_symbols(library: Library) -> None:
    """Check that a library exports its two functions alone, and needs the stable ABI alone."""
    needed = library.symbols("--undefined-only")
    assert any("torch_library_impl" in each for each in needed)
    assert [each for each in needed if re.search(r"\bat::|\bc10::|\b_?Py[A-Z_]", each)] == []
    defined = [each.split(maxsplit=2)[2] for each in library.symbols("--defined-only")]
    # Visible whatever the flags: the C++ library's own templates, and the linker's marks.
    others = r"\bstd::|__gnu_cxx::|^(__bss_start|_edata|_end|_init|_fini)$"
    ours = [each for each in defined if not re.search(others, each)]
    assert sorted(ours) == ["custom_pypto_register_v1", "custom_pypto_unregister_v1"]
