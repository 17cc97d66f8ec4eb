"""Makes wheels of plugins, right ones and ones that a test has changed."""

import base64
import hashlib
import zipfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from custom_pypto_contract import abi, manifest, platforms
from custom_pypto_contract.manifest import GROUP, Manifest

PACKAGE = "acme_first"
INFO = "acme_first-1.0.dist-info"
LIBRARY = f"{PACKAGE}/lib/libcustom_pypto_first.so"
METADATA = """\
Metadata-Version: 2.4
Name: acme-first
Version: 1.0
License-Expression: Apache-2.0
License-File: LICENSE
Requires-Dist: custom-pypto-core>=0.1
"""
MACHINE = platforms.machine(platforms.platform_tag())


@dataclass
class WheelDraft:
    """What a wheel will hold. `write` adds the manifest, WHEEL and RECORD unless they are there."""

    manifest: Manifest
    files: dict[str, bytes]
    platform: str
    record: dict[str, str] = field(default_factory=dict)

    def forge(self, **changes: Any) -> None:
        self.manifest = replace(self.manifest, **changes)

    def set_library(self, contents: bytes) -> None:
        """Put a library into the wheel, and its hash into the manifest."""
        self.files[LIBRARY] = contents
        path = LIBRARY.removeprefix(f"{PACKAGE}/")
        self.forge(library=manifest.Library(path, hashlib.sha256(contents).hexdigest()))

    def write(self, folder: Path) -> Path:
        tag = f"py3-none-{self.platform}"
        tags = "".join(f"Tag: py3-none-{each}\n" for each in self.platform.split("."))
        files = {
            f"{PACKAGE}/{manifest.FILE_NAME}": self.manifest.to_json().encode(),
            f"{INFO}/WHEEL": f"Wheel-Version: 1.0\n{tags}".encode(),
            **self.files,
        }
        rows = {name: _digest(contents) for name, contents in files.items()} | self.record
        record = "".join(f"{name},{digest},\n" for name, digest in rows.items())
        files[f"{INFO}/RECORD"] = f"{record}{INFO}/RECORD,,\n".encode()
        path = folder / f"acme_first-1.0-{tag}.whl"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, contents in files.items():
                archive.writestr(name, contents)
        return path


def draft(library: bytes | None) -> WheelDraft:
    """Return the wheel of a plugin with nothing wrong; without a library its kernel is Python."""
    described = Manifest(
        name="first",
        distribution="acme-first",
        version="1.0",
        core_abi=abi.CORE_ABI,
        torch_target="2.10",
        platform=platforms.platform_tag() if library else manifest.ANY_PLATFORM,
        ops=(manifest.make_op({"schema": "first(Tensor x) -> Tensor"}),),
        requires_ops=(),
        library=None,
        kernels={"first": ["CPU"]},
    )
    files = {
        f"{PACKAGE}/__init__.py": b"raise SystemExit('a check runs nothing')\n",
        f"{INFO}/METADATA": METADATA.encode(),
        f"{INFO}/entry_points.txt": f"[{GROUP}]\nfirst = {PACKAGE}\n".encode(),
        f"{INFO}/licenses/LICENSE": b"Apache-2.0\n",
    }
    # No symbol of today's systems is newer.
    made = WheelDraft(described, files, f"manylinux_2_41_{MACHINE}" if library else "any")
    if library is not None:
        made.set_library(library)
    return made


def _digest(contents: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(contents).digest())
    return f"sha256={digest.decode().rstrip('=')}"
