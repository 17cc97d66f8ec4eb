"""Compiles and links for older systems than this one, and for other processors.

The package ziglang has clang, a linker, and headers and symbols of every glibc. This machine's g++
compiles for its own processor, so that kernels have the same results and speed as ever; clang
compiles for the others. The headers of libstdc++ come from g++: they are the same for every
processor. libstdc++ itself is a stub, a library with names and no code. It offers what the systems
have that the wheel is for, so a newer symbol is an error of the linker. torch's library is a stub
too, because this machine's may be for another processor.
"""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from custom_pypto_contract import guarded, platforms, variables

from .compiler import Compiler
from .errors import BuildError
from .installed import Torch

_OLDER = Path(__file__).with_name("older_systems")
LIBSTDCXX = _OLDER / "libstdcxx.cpp"
"""A source that belongs to every library for older systems."""
_MACHINES = {"x86_64": "x86", "aarch64": "aarch64"}
"""The names of their headers in ziglang."""
_ZIG = (sys.executable, "-m", "ziglang")
_STABLE = re.compile(r"(aoti_)?torch_\w+")
_STUBS = ("libstdc++.so.6", "libgcc_s.so.1")
_OLDEST = (2, 17)
"""The glibc below which no torch runs that plugins work with."""
# The newest versions of GLIBCXX_3.4 and CXXABI_1.3 that a manylinux with this glibc has.
_LIBSTDCXX = {
    (2, 5): (8, 1),
    (2, 12): (13, 3),
    (2, 17): (19, 7),
    (2, 24): (22, 10),
    (2, 27): (24, 11),
    (2, 31): (28, 12),
    (2, 34): (29, 13),
    (2, 35): (30, 13),
    (2, 39): (33, 15),
}


@dataclass(frozen=True)
class Target:
    """The systems that a wheel is for; `tag` is their platform tag."""

    tag: str
    glibc: tuple[int, int]
    machine: str

    @property
    def zig(self) -> tuple[str, ...]:
        """The command that links for these systems."""
        glibc = ".".join(map(str, self.glibc))
        return (*_ZIG, "cc", "-target", f"{self.machine}-linux-gnu.{glibc}")


def find_target(environment: Mapping[str, str] = os.environ) -> Target | None:
    """Return what CUSTOM_PYPTO_PLATFORM names; None without it.

    Raises:
        BuildError: plugins are not built for that.
    """
    tag = environment.get(variables.PLATFORM)
    if not tag:
        return None
    glibc, machine = platforms.parse(tag) or (None, "")
    if glibc is None or glibc < _OLDEST or machine not in _MACHINES:
        oldest = "_".join(map(str, _OLDEST))
        raise BuildError(
            f"{variables.PLATFORM} must be a tag manylinux_<glibc>_<machine> from"
            f" manylinux_{oldest} on, of {' or '.join(_MACHINES)}, such as manylinux_2_28_aarch64;"
            f" got {tag!r}"
        )
    return Target(tag, glibc, machine)


def find_compiler(target: Target, given: Compiler, stubs: Path) -> Compiler:
    """Return the compiler for `target`, with the flags of `given`.

    It is `given` if the target has this machine's processor, or if CXX is set; else ziglang's
    clang. ziglang links; `stubs` is the folder that `write_stubs` has filled.

    Raises:
        BuildError: ziglang is not installed, or the headers of `given` were not found.
    """
    libraries = [str(stubs / name) for name in _STUBS]
    if os.environ.get("CXX") or target.machine == platform.machine():
        command = given.command
        own_headers = _run(*command, "-print-file-name=include").strip()
        # Where g++ asks for instruction sets, ziglang's library would answer that there are none.
        libraries.append(_run(*command, "-print-libgcc-file-name").strip())
    else:
        command = (*_ZIG, "clang", f"--target={target.machine}-linux-gnu")
        own_headers = str(_ziglang() / "lib/include")
    return Compiler(
        command=(*command, *_headers(target, given, own_headers)),
        link_command=target.zig,
        compile_flags=given.compile_flags,
        link_flags=(
            *libraries,
            "-Wl,--strip-debug",  # What ziglang itself adds has debug information.
            *given.link_flags,
        ),
    )


def write_stubs(target: Target, torch: Torch, folder: Path) -> Torch:
    """Write the stubs of libstdc++, libgcc_s and torch's library; give torch with that stub.

    Raises:
        BuildError: ziglang or a library of this machine was not found.
    """
    _ziglang()
    folder.mkdir(parents=True, exist_ok=True)
    for name in _STUBS:
        found = _run("g++", f"-print-file-name={name}").strip()
        by_version: dict[str, list[str]] = {}
        for symbol, version in _symbols(Path(found)):
            if version and is_in(version, target.glibc):
                by_version.setdefault(version, []).append(symbol)
        _write_stub(target, folder / name, by_version)
    exported = (symbol for symbol, _ in _symbols(torch.lib / "libtorch_cpu.so"))
    _write_stub(target, folder / "libtorch_cpu.so", {"": list(filter(_STABLE.fullmatch, exported))})
    return Torch(torch.include, folder)


def _write_stub(target: Target, path: Path, by_version: Mapping[str, list[str]]) -> None:
    """Write a library with these symbols; its soname is the name of the file."""
    assembly, script = path.with_suffix(".s"), path.with_suffix(".map")
    lines = [
        f'.globl "{symbol}"\n.type "{symbol}",%function\n"{symbol}":\n'
        for symbols in by_version.values()
        for symbol in symbols
    ]
    text = f".text\n{''.join(lines)}"
    if path.exists() and assembly.exists() and assembly.read_text(encoding="utf-8") == text:
        return
    versions = [
        f"{version} {{ global: {' '.join(f'{symbol};' for symbol in symbols)} }};\n"
        for version, symbols in by_version.items()
        if version
    ]
    assembly.write_text(text, encoding="utf-8")
    script.write_text("".join(versions), encoding="utf-8")
    options = [f"-Wl,--version-script={script}"] if versions else []
    flags = ("-shared", "-nostdlib", f"-Wl,-soname,{path.name}", *options)
    _run(*target.zig, *flags, str(assembly), "-o", str(path))


def _symbols(library: Path) -> Iterator[tuple[str, str]]:
    """Yield the symbols that a library offers, and their default versions, such as GLIBCXX_3.4."""
    text = _run("nm", "-D", "--defined-only", "--with-symbol-versions", str(library))
    for line in text.splitlines():
        symbol, _, version = line.split()[-1].partition("@@")
        if "@" not in symbol and symbol != version:
            yield symbol, version


def is_in(version: str, glibc: tuple[int, int]) -> bool:
    """Whether libstdc++ has a version on the systems with this glibc; other names count as old."""
    found = re.fullmatch(r"(GLIBCXX_3\.4|CXXABI_1\.3)(?:\.(\d+))?", version)
    if found is None:
        return True
    glibcxx, cxxabi = max(row for of, row in _LIBSTDCXX.items() if of <= glibc)
    return int(found[2] or 0) <= (cxxabi if found[1].startswith("CXXABI") else glibcxx)


def _headers(target: Target, given: Compiler, own: str) -> Iterator[str]:
    """Yield the options for the headers of this machine's libstdc++, and of ziglang's glibc."""
    text = _run(*given.command, "-v", "-E", "-xc++", os.devnull, "-o", os.devnull, with_errors=True)
    folders = re.findall(r"^ (/\S*c\+\+\S*)$", text, re.MULTILINE)
    if not folders:
        raise BuildError(
            f"{' '.join(given.command)} names no folder with headers of libstdc++, which torch_npu"
            " is built with; install g++"
        )
    machine = _MACHINES[target.machine]
    glibc = (f"{machine}-linux-gnu", "generic-glibc", f"{machine}-linux-any", "any-linux-any")
    yield from ("-nostdinc", "-nostdinc++", f"-D__GLIBC_MINOR__={target.glibc[1]}")
    headers = _ziglang() / "lib/libc/include"
    for folder in (_OLDER, *folders, own, *(headers / name for name in glibc)):
        yield from ("-isystem", str(folder))


def _ziglang() -> Path:
    spec = find_spec("ziglang")
    if spec is None or not spec.submodule_search_locations:
        raise BuildError(f"{variables.PLATFORM} needs ziglang; run `pip install ziglang`")
    return Path(next(iter(spec.submodule_search_locations)))


def _run(*command: str, with_errors: bool = False) -> str:
    status, output, errors = guarded.run(command)
    if status != 0:
        raise BuildError(f"{' '.join(command)} failed; it is of g++ and its binutils:\n{errors}")
    return errors if with_errors else output
