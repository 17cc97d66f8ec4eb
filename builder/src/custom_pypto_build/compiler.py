"""The C++ compiler, and the flags that every plugin is compiled and linked with."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from custom_pypto_contract import abi, guarded
from custom_pypto_contract.errors import FOLDERS, how_to_install

from . import installed
from .errors import BuildError
from .installed import Torch
from .settings import Settings, read_toml

_DEFAULTS = ("g++", "c++", "clang++")


@dataclass(frozen=True)
class Compiler:
    """The commands that compile and link, and the flags that the environment adds."""

    command: tuple[str, ...]
    link_command: tuple[str, ...]
    compile_flags: tuple[str, ...]
    link_flags: tuple[str, ...]


def find_compiler() -> Compiler:
    """The compiler that CXX names, else g++, c++ or clang++.

    CPPFLAGS and CXXFLAGS are added to every compilation, CXXFLAGS and LDFLAGS to the link.

    Raises:
        BuildError: it is not installed, or a variable is not quoted as a shell would want it.
    """
    cxxflags = _words("CXXFLAGS")
    command = _command()
    return Compiler(
        command=command,
        link_command=command,
        compile_flags=(*_words("CPPFLAGS"), *cxxflags),
        link_flags=(*cxxflags, *_words("LDFLAGS")),
    )


def compile_flags(plugin: Settings, torch: Torch) -> list[str]:
    """The flags of every source of `plugin`, before its own and the environment's."""
    major, minor = abi.TORCH_TARGET
    core = core_include()
    beside = plugin.root.parent
    packages = {name: package_include(name, beside) for name in plugin.include_packages}
    of_library = "".join(f"{kind.upper()}_" for kind in plugin.isa_kinds)
    return [
        *("-std=c++17", "-O2", "-fPIC", "-fvisibility=hidden", "-fvisibility-inlines-hidden"),
        *("-Wall", "-Wextra", "-DNDEBUG"),
        f"-DTORCH_TARGET_VERSION=0x{major:02x}{minor:02x}000000000000",
        f"-DCUSTOM_PYPTO_FOR_EACH_ISA_OF_LIBRARY=CUSTOM_PYPTO_FOR_EACH_{of_library}ISA",
        # No path of this machine in the library: two builds anywhere give the same bytes.
        f"-ffile-prefix-map={plugin.root}=.",
        f"-ffile-prefix-map={torch.include}=torch",
        f"-ffile-prefix-map={core}=custom_pypto",
        *(f"-ffile-prefix-map={folder}={name}" for name, folder in packages.items()),
        *(f"-I{folder}" for folder in plugin.include_dirs),
        *(flag for folder in packages.values() for flag in ("-isystem", str(folder))),
        *("-isystem", str(core)),
        *("-isystem", str(torch.include)),
        *plugin.flags,
    ]


def isa_flags(machine: str, kinds: Iterable[str] = ()) -> dict[str, tuple[str, ...]]:
    """The flags that compile for each instruction set of `machine`, by name.

    They are those in core's headers, and the macro that names the instruction set. `kinds` adds the
    instruction sets that are for sources of these kinds alone.

    Raises:
        BuildError: core says nothing of instruction sets, or what it says cannot be read.
    """
    document = read_toml(core_include() / "custom_pypto" / "cpu" / "isa.toml")
    further = [document.get(kind, {}).get(machine, {}) for kind in kinds]
    flags: tuple[str, ...] = ()
    found: dict[str, tuple[str, ...]] = {}
    for family in ("any", machine):
        for name, added in document.get(family, {}).items():
            flags = (*flags, *added)
            found[name] = flags
            for of_kind in further:
                for its_name, own in of_kind.get(name, {}).items():
                    found[its_name] = (*flags, *own)
    return {name: (f"-DCUSTOM_PYPTO_CPU_ISA={name}", *flags) for name, flags in found.items()}


def find_macros(command: Sequence[str], includes: Iterable[str]) -> frozenset[str]:
    """Return the names that the compiler replaces by something else in a file with `includes`.

    `command` is the compiler with its flags. Macros with parameters do not count: what has their
    name and no parentheses stays. Nothing is found where the headers cannot be read; compiling
    then fails, and says why.
    """
    included = [word for each in includes for word in ("-include", each)]
    _, output, _ = guarded.run([*command, "-xc++", "-dM", "-E", *included, os.devnull])
    words = (line.split(maxsplit=2) for line in output.splitlines())
    return frozenset(each[1] for each in words if "(" not in each[1] and each[2:] != each[1:2])


def link_flags(torch: Torch, exports: Path) -> list[str]:
    """The flags that come after the objects; `exports` is a linker version script.

    The library names libtorch_cpu.so but no place of it: core loads it after ``import torch``.
    """
    # Core's headers call dladdr and dlsym, which glibc before 2.34 keeps in a library of its own.
    return [
        f"-L{torch.lib}",
        "-ltorch_cpu",
        "-ldl",
        "-Wl,--no-undefined",
        f"-Wl,--version-script={exports.as_posix()}",
    ]


def core_include() -> Path:
    """The folder of core's C++ headers, in the installed custom-pypto-core.

    Raises:
        BuildError: they are not there.
    """
    return _include(
        "custom_pypto", "core/include", "core's C++ headers", "Install custom-pypto-core"
    )


def package_include(package: str, projects: Path) -> Path:
    """The folder of C++ headers that a package has: installed, or in one of the `projects`.

    ``pip install ./plugins/*`` builds all projects before it installs one.

    Raises:
        BuildError: they are not there.
    """
    if installed.find_package(package) is None:
        for folder in projects.glob(f"*/src/{package}/include"):
            return folder
    remedy = "Name the wheel that has it in requires of [build-system], and install it"
    if (wheel := package.replace("_", "-")) in FOLDERS:
        remedy += f" ({how_to_install(wheel)})"
    return _include(package, "include", f"the C++ headers of the package {package}", remedy)


def _include(package: str, folder: str, what: str, remedy: str) -> Path:
    found = installed.find_package(package)
    include = None if found is None else found / folder
    if include is None or not include.is_dir():
        place = f"{include or f'the package {package} of {sys.executable}'}"
        raise installed.not_found(what, place, remedy)
    return include


def _command() -> tuple[str, ...]:
    if words := _words("CXX"):
        if shutil.which(words[0]) is None:
            raise BuildError(
                f"the C++ compiler {words[0]!r}, which the variable CXX asks for, was not found on"
                " PATH; install it or set CXX to another"
            )
        return words
    for name in _DEFAULTS:
        if shutil.which(name) is not None:
            return (name,)
    raise BuildError(
        f"no C++ compiler was found on PATH (looked for {', '.join(_DEFAULTS)}); install one, for"
        " instance with `apt install g++`, or set CXX"
    )


def _words(variable: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(os.environ.get(variable, "")))
    except ValueError as error:
        raise BuildError(f"{variable}={os.environ[variable]!r}: {error}") from None
