"""What ``custom-pypto check`` says of an unpacked wheel."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import replace
from email.message import Message
from email.parser import HeaderParser
from importlib.util import find_spec
from io import StringIO
from typing import Any

from custom_pypto_cli import subprocess_call
from custom_pypto_cli.report import Check, Report
from custom_pypto_contract import contract_data, elf, manifest, platforms
from custom_pypto_contract.dispatch_keys import has_device
from custom_pypto_contract.elf import ElfError, ElfLibrary
from custom_pypto_contract.manifest import GROUP, Manifest, ManifestError
from custom_pypto_discovery import discovery, distributions
from custom_pypto_discovery.environment import Environment
from custom_pypto_discovery.host import CORE, this_host
from custom_pypto_discovery.installed_plugin import InstalledPlugin, normalize_name, reinstall

from .unpacked_wheel import UnpackedWheel, shorten_list

_BUILD_AGAIN = "build the wheel again, and change nothing in it afterwards"
_OURS = re.compile("custom_pypto(_(blocks|build|cli|contract|discovery|plugin|testing))?")
# The C functions of PyTorch's stable ABI, and std:: of C++.
_STABLE = re.compile(r"(aoti_torch|torch)_\w+|_Z(T[VIST])?(N[VK]*)?S[tabsiod]\w*")
_OF_TORCH = "libtorch_cpu.so"


def make_report(wheel: UnpackedWheel) -> Report:
    """Return the checks of each section.

    Raises:
        WheelError: the metadata cannot be read.
    """
    headers = HeaderParser().parsestr(wheel.read("METADATA"))
    report = {"files": [*_files(wheel)], "metadata": [*_metadata(wheel, headers)]}
    found = [*distributions.parse_entry_points(wheel.read("entry_points.txt"), GROUP)]
    check = Check("entry point", ", ".join(map(" = ".join, found)) or "none")
    if len(found) != 1:
        problem = f"the wheel has {len(found)} entry points in the group {GROUP!r}"
        advice = f'write one in [project.entry-points."{GROUP}"] of pyproject.toml'
        report["plugin"] = [check.with_problem(problem, advice)]
        return report
    [(name, module)] = found
    plugin = InstalledPlugin(
        name, module, headers.get("Name", ""), headers.get("Version", ""), metadata=wheel.info
    )
    problem = plugin.explain_module()
    if not problem and not wheel.has_module(module):
        problem = f"its entry point names {module!r}, and the wheel has no such module"
    if problem:
        report["plugin"] = [check.with_problem(problem, "name the plugin's package")]
        return report
    plugin = replace(plugin, folder=wheel.site / plugin.package)
    library = _read_library(plugin)
    host = this_host()
    if library is not None:
        # The wheel may be for another processor than this machine's.
        host = replace(host, platform=f"linux_{library.machine}")
    plugin = discovery.inspect(plugin, Environment(), host)
    reason = plugin.reason.removesuffix(f"; {reinstall(plugin.distribution)}")
    problem = reason.replace(f"{wheel.site}/", "")
    inspected = _judge("inspection by core", str(plugin.status), problem, _BUILD_AGAIN)
    report["plugin"] = [check, inspected]
    if plugin.manifest is not None:
        report["plugin"] += _ops(plugin.manifest)
        problem = "the wheel is for one platform, and no library in it can be read"
        problem = "" if wheel.platforms == ["any"] else problem
        none = [_judge("machine", "any", problem, _BUILD_AGAIN)]
        report["library"] = none if library is None else [*_library(wheel, library)]
    return report


def _judge(name: str, value: str, problem: str, advice: str) -> Check:
    check = Check(name, value)
    return check.with_problem(problem, advice) if problem else check


def _read_library(plugin: InstalledPlugin) -> ElfLibrary | None:
    """Return the library that the manifest names; None without one, or if one cannot be read."""
    assert plugin.folder is not None
    try:
        described = manifest.read(plugin.folder / manifest.FILE_NAME).library
        if described is not None:
            return elf.read((plugin.folder / described.path).read_bytes())
    except (ElfError, ManifestError, OSError):
        pass
    return None


def _files(wheel: UnpackedWheel) -> Iterator[Check]:
    changed = wheel.find_unrecorded()
    problem = f"the files are not as RECORD says: {shorten_list(changed)}" if changed else ""
    yield _judge("wheel", wheel.path.name, problem, _BUILD_AGAIN)
    check = Check("packages", ", ".join(wheel.packages) or "none")
    if ours := [each for each in wheel.packages if _OURS.fullmatch(each)]:
        problem = f"the wheel has files in {', '.join(ours)}, a package of custom_pypto itself"
        check = check.with_problem(problem, "put them into the plugin's own package")
    elif len(wheel.packages) > 1:
        remark = f"the wheel installs {shorten_list(wheel.packages)} into site-packages"
        advice = "keep only what its users need; tests and docs are for the source distribution"
        check = check.with_note(remark, advice)
    yield check


def _metadata(wheel: UnpackedWheel, headers: Message) -> Iterator[Check]:
    needed = headers.get_all("Requires-Dist", [])
    names = {normalize_name(re.split(r"[^\w.-]", each)[0]) for each in needed}
    problem = f"the wheel does not require {CORE}, without which its ops cannot be found"
    yield _judge(
        "requires",
        ", ".join(needed) or "nothing",
        "" if CORE in names else problem,
        f'add it in pyproject.toml: dependencies = ["{CORE}"]',
    )
    licence = headers.get("License-Expression", "") or headers.get("License", "")
    files = headers.get_all("License-File", [])
    shown = ", ".join(filter(None, [licence.partition("\n")[0], *files]))
    check = Check("licence", shown or "none")
    if lost := [each for each in files if wheel.info / "licenses" / each not in wheel.files]:
        check = check.with_problem(f"the wheel has no {shorten_list(lost)}", _BUILD_AGAIN)
    elif not licence or not files:
        check = check.with_note(
            "the wheel does not name its licence, or has no text of it",
            'write license = "..." in pyproject.toml, an SPDX expression such as "Apache-2.0", and'
            " put a file LICENSE beside it",
        )
    yield check


def _ops(described: Manifest) -> Iterator[Check]:
    if described.kernels is None:
        yield Check("kernels", "not known").with_note(
            "the build did not import the plugin, so nobody knows which ops have kernels",
            f"build it where torch and {CORE} are, for that machine; else test it where it runs:"
            f" python -m custom_pypto_testing {described.name}",
        )
    for op in described.ops:
        keys = None if described.kernels is None else described.kernels.get(op.name, ())
        shown = "kernels not known" if keys is None else ", ".join(keys) or "no kernel"
        problem, advice = "", "register one in C++ or by the hook custom_pypto_kernels"
        if keys is not None and not has_device(keys):
            problem = f"{op.name} has no kernel for any device"
        try:
            contract_data.read_contract(op.data)
        except Exception as error:
            # The data is anybody's: what reading it raises says what is wrong with it.
            problem = f"its contract cannot be read: {type(error).__name__}: {error}"
            advice = _BUILD_AGAIN
        yield _judge(op.name, shown, problem, advice)


def _library(wheel: UnpackedWheel, library: ElfLibrary) -> Iterator[Check]:
    systems = {platform: platforms.parse(platform) for platform in wheel.platforms}
    wrong = [each for each, of in systems.items() if of is None or of.machine != library.machine]
    yield _judge(
        "machine",
        library.machine,
        f"the tag {wrong[0]} lets it be installed where the library does not run" if wrong else "",
        f"tag it manylinux_2_XX_{library.machine}, where 2.XX is the oldest glibc",
    )
    foreign = [path for path in library.run_paths if not path.startswith("$ORIGIN")]
    yield _judge(
        "folders",
        ", ".join(library.run_paths) or "none",
        f"the library looks for others in {shorten_list(foreign)}" if foreign else "",
        "link it without -rpath, which names folders of this machine",
    )
    foreign = sorted(each for each in library.unversioned if not _STABLE.fullmatch(each))
    problem = f"the library needs {shorten_list(foreign)}, not of PyTorch's stable ABI"
    yield _judge(
        "symbols",
        f"{len(library.unversioned)} of PyTorch",
        problem if foreign else "",
        "use torch/csrc/stable and core's headers instead of Python.h, ATen and c10",
    )
    if not wrong:
        yield from _audit(wheel)


def _audit(wheel: UnpackedWheel) -> Iterator[Check]:
    """Yield what auditwheel says of the libraries and the systems that the wheel needs."""
    unknown = Check("system", "not known")
    if find_spec("auditwheel") is None:
        yield unknown.with_note(
            "auditwheel is not installed, so nobody knows on which systems the library runs",
            "pip install auditwheel, and check the wheel again",
        )
        return
    outcome = subprocess_call.call(_run_auditwheel, str(wheel.path))
    if outcome.timed_out:
        yield unknown.with_note("auditwheel did not finish", "check the wheel again")
        return
    if not outcome.ok:
        problem = f"auditwheel cannot read the wheel: {outcome.failure}"
        yield unknown.with_problem(problem, _BUILD_AGAIN)
        return
    audit: Any = outcome.value
    needed = audit["external_libs"]
    others = sorted({*needed} - {_OF_TORCH})
    yield _judge(
        "libraries",
        ", ".join(needed) or "those of every Linux",
        f"the library needs {shorten_list(others)}, which not every Linux has" if others else "",
        "link it statically, or open it by dlopen where it is used",
    )
    check = Check("system", audit["sym_tag"])
    lowest = platforms.parse(check.value)
    for platform in wheel.platforms:
        promised = platforms.parse(platform)
        if promised is None or promised.glibc is None:
            remark = f"the tag {platform} promises no glibc, and package indexes refuse it"
            tag = f"python -m wheel tags --remove --platform-tag {check.value}"
            advice = f"`{tag} {shlex.quote(str(wheel.path))}` gives it another tag"
            check = check.with_note(remark, advice)
        elif lowest is None or lowest.glibc is None or promised.glibc < lowest.glibc:
            problem = f"the tag {platform} promises older systems than the library needs"
            advice = f"tag it {check.value}, or build it on an older system"
            check = check.with_problem(problem, advice)
    yield check


def _run_auditwheel(path: str) -> object:
    """Return the JSON of ``auditwheel show``; called in a process of its own."""
    from auditwheel.main import main

    sys.argv = ["auditwheel", "show", "--json", path]
    with redirect_stdout(StringIO()) as output:
        status = main()
    if status:
        sys.exit(status)
    return json.loads(output.getvalue())
