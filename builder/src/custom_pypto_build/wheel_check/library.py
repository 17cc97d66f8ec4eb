"""The library of a wheel: its hash, where it runs, what it needs and what it offers."""

from __future__ import annotations

import re
from collections.abc import Iterator

from custom_pypto_cli.report import Check
from custom_pypto_contract import manylinux
from custom_pypto_contract.abi import REGISTER, UNREGISTER
from custom_pypto_contract.elf import ElfLibrary
from custom_pypto_contract.manifest import Manifest

from custom_pypto_build.wheel_check.contents import BUILD_AGAIN, shorten_list
from custom_pypto_build.wheel_check.plugin_wheel import PluginWheel

_PREFIX = "custom_pypto_"
# Where the linker puts these, they harm nobody.
_LINKER_MARKS = {"_init", "_fini", "_end", "_edata", "__bss_start"}
_OF_TORCH = "libtorch_cpu.so"
# Those that every Linux with glibc and libstdc++ has.
_SYSTEM = re.compile(
    r"(libc|libm|libmvec|libstdc\+\+|libgcc_s|libdl|libpthread|librt|libatomic)\.so\.\d+"
    r"|ld-linux[\w-]*\.so\.\d+|ld64\.so\.\d+"
)
# The C functions of PyTorch's stable ABI, and std:: of C++.
_STABLE = re.compile(r"(aoti_torch|torch)_\w+|_Z(T[VIST])?(N[VK]*)?S[tabsiod]\w*")


def probes(wheel: PluginWheel) -> Iterator[Check]:
    """Compare tag and library, and look into the library's tables."""
    yield _wheel_tags(wheel)
    manifest, library = wheel.manifest, wheel.library
    if isinstance(manifest, str):
        return
    if manifest.library is None:
        yield _python_only(wheel)
        return
    yield from _hashes(wheel, manifest)
    if isinstance(library, str):
        yield Check("library", "cannot be read").with_problem(library, BUILD_AGAIN)
        return
    yield _machine(wheel, manifest, library)
    yield _system(wheel, library)
    yield _exports(library)
    yield _libraries(library)
    yield _symbols(library)


def _wheel_tags(wheel: PluginWheel) -> Check:
    tags = wheel.file.tags
    probe = Check("tag", ", ".join(sorted(tags.expand())))
    if set(wheel.wheel_headers.get_all("Tag", [])) != tags.expand():
        return probe.with_problem(
            "the file WHEEL has other tags than the file name",
            "rename a wheel by `python -m wheel tags`, which changes both",
        )
    if (tags.pythons, tags.abis) != (("py3",), ("none",)):
        return probe.with_note(
            "the wheel is not for every Python 3, though a plugin's library needs none of Python",
            "custom_pypto_build tags it py3-none",
        )
    return probe


def _python_only(wheel: PluginWheel) -> Check:
    probe = Check("library", "none: the kernels are Python")
    if wheel.file.tags.platforms != ("any",):
        return probe.with_problem(
            "the wheel is for one platform, but has no library", "build it again, tagged any"
        )
    return probe


def _hashes(wheel: PluginWheel, manifest: Manifest) -> Iterator[Check]:
    for library in filter(None, (manifest.library, manifest.ascendc)):
        name = wheel.path_of(library)
        found = wheel.file.files.get(name, "")
        probe = Check(library.path, f"sha256 {found[:16]}..." if found else "not in the wheel")
        if found != library.sha256:
            probe = probe.with_problem(
                f"the manifest says sha256 {library.sha256[:16]}..., so core will refuse {name}",
                "build the wheel again; run neither strip nor patchelf on a library afterwards",
            )
        yield probe


def _machine(wheel: PluginWheel, manifest: Manifest, library: ElfLibrary) -> Check:
    probe = Check("machine", library.machine)
    if manifest.platform != f"linux_{library.machine}":
        return probe.with_problem(f"the manifest says {manifest.platform}", BUILD_AGAIN)
    for platform in wheel.file.tags.platforms:
        parsed = manylinux.parse(platform)
        if parsed is None or parsed[1] != library.machine:
            return probe.with_problem(
                f"the tag {platform} lets it be installed where the library does not run",
                f"tag it manylinux_2_XX_{library.machine}, where 2.XX is the oldest glibc",
            )
    return probe


def _system(wheel: PluginWheel, library: ElfLibrary) -> Check:
    newest = {
        prefix: max(of_prefix, key=_numbers)
        for prefix in ("GLIBC", "GLIBCXX", "CXXABI")
        if (of_prefix := [each for each in library.versions if each.startswith(f"{prefix}_")])
    }
    glibc = max(map(manylinux.glibc_of, library.versions), default=(2, 0))
    shown = ", ".join(newest.values()) or "no versions"
    if glibc == manylinux.UNKNOWN:
        unknown = [each for each in library.versions if manylinux.glibc_of(each) == glibc]
        return Check("system", shown).with_problem(
            f"the library needs {shorten_list(unknown)}, which no system with a manylinux tag has",
            "build it on an older system",
        )
    tagged = max(glibc, manylinux.OLDEST)
    lowest = f"manylinux_{tagged[0]}_{tagged[1]}_{library.machine}"
    probe = Check("system", f"{shown}: {lowest}")
    for platform in wheel.file.tags.platforms:
        parsed = manylinux.parse(platform)
        promised = None if parsed is None else parsed[0]
        if promised is None:
            return probe.with_note(
                f"the tag {platform} promises no glibc, and package indexes refuse it",
                f"tag it {lowest}: `python -m wheel tags --platform-tag {lowest}`",
            )
        if glibc > promised:
            newer = [each for each in library.versions if manylinux.glibc_of(each) > promised]
            return probe.with_problem(
                f"the tag {platform} promises glibc {promised[0]}.{promised[1]} and its libstdc++,"
                f" but the library needs {shorten_list(newer)}",
                f"tag it {lowest}, or build it on an older system",
            )
    return probe


def _exports(library: ElfLibrary) -> Check:
    exported = set(library.exported) - _LINKER_MARKS
    probe = Check("exports", ", ".join(sorted(exported)[:8]) or "nothing")
    missing = sorted({REGISTER, UNREGISTER} - exported)
    if missing:
        return probe.with_problem(
            f"the library does not export {' and '.join(missing)}, which core calls",
            "register the ops with CUSTOM_PYPTO_PLUGIN of custom_pypto/plugin.h",
        )
    others = sorted(name for name in exported if not name.startswith(_PREFIX))
    if others:
        return probe.with_problem(
            f"the library exports {shorten_list(others)}, which another library could be bound to",
            f"link it by custom_pypto_build, which exports names that begin with {_PREFIX} alone",
        )
    return probe


def _libraries(library: ElfLibrary) -> Check:
    probe = Check("libraries", ", ".join(library.needed) or "none")
    foreign = [path for path in library.run_paths if not path.startswith("$ORIGIN")]
    if foreign:
        return probe.with_problem(
            f"the library looks for others in {shorten_list(foreign)}, a folder of the machine"
            " that it was built on",
            "link it without -rpath",
        )
    others = [name for name in library.needed if name != _OF_TORCH and not _SYSTEM.fullmatch(name)]
    if others:
        return probe.with_problem(
            f"the library needs {shorten_list(others)}, which neither PyTorch's stable ABI nor"
            " every Linux has",
            "link it statically, or open it by dlopen where it is used",
        )
    return probe


def _symbols(library: ElfLibrary) -> Check:
    unversioned = [each.name for each in library.undefined if not each.version and not each.is_weak]
    of_torch = [name for name in unversioned if re.match("(aoti_)?torch_", name)]
    probe = Check("symbols", f"{len(library.undefined)} needed, {len(of_torch)} of PyTorch")
    others = sorted(name for name in unversioned if not _STABLE.fullmatch(name))
    if others:
        return probe.with_problem(
            f"the library needs {shorten_list(others)}, not of PyTorch's stable ABI: it works with"
            " one version of what has them",
            "use torch/csrc/stable and core's headers instead of Python.h, ATen and c10",
        )
    return probe


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]
