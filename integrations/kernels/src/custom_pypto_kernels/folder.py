"""Writes the folder from which Hugging Face kernels loads a plugin."""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import zipfile
import zlib
from email import message_from_string
from pathlib import Path
from tempfile import TemporaryDirectory

from custom_pypto_contract import manifest
from custom_pypto_contract.manifest import ANY_PLATFORM, Manifest
from custom_pypto_discovery import library_file
from custom_pypto_discovery.installed_plugin import normalize_name

from .replacement import replace_folder

HERE = Path(__file__).parent

LARGEST = 1 << 30
"""The largest sum of the sizes of a wheel's files, in bytes."""


def write_folder(wheel: Path, folder: Path) -> list[Path]:
    """Write `folder` from the wheel of a plugin, and return its build variants.

    One variant is for CPUs and one for NPUs. Their files are the same: a library has both kernels.
    Wheels of several platforms may go into one folder.

    A variant that is there already stays until the new one is complete and checked; see
    `replacement`.

    Raises:
        ValueError: `wheel` is not the wheel of a plugin, its library is not that of its manifest,
            its files have more than `LARGEST` bytes, or ``build`` in `folder` is a link.
        OSError: a file cannot be read or written.
    """
    plugin = _manifest(wheel)
    build = folder / "build"
    if build.is_symlink():
        raise ValueError(f"{build} is a link, behind which nothing is written; remove it")
    build.mkdir(parents=True, exist_ok=True)
    names = {"cpu": _cpu_variant(plugin), "cann": "torch-npu"}
    # Whatever is in it at the end is removed: the old variants, or new ones that failed. Kernels
    # takes no notice of it.
    with TemporaryDirectory(prefix=".new-", dir=build) as beside:
        for backend, name in names.items():
            _write_variant(wheel, plugin, backend, Path(beside) / name)
        for name in names.values():
            replace_folder(Path(beside) / name, build / name)
    return [build / name for name in names.values()]


def _manifest(wheel: Path) -> Manifest:
    if not wheel.is_file() or not zipfile.is_zipfile(wheel):
        raise ValueError(f"{wheel} must be the wheel of a plugin; it is missing, or no wheel")
    with zipfile.ZipFile(wheel) as archive:
        # Reading a file ends at this size, whatever the archive holds.
        size = sum(each.file_size for each in archive.infolist())
        if size > LARGEST:
            raise ValueError(f"{wheel} has files of {size} bytes, at most {LARGEST} are unpacked")
        names = [name for name in archive.namelist() if Path(name).name == manifest.FILE_NAME]
        if len(names) != 1:
            raise ValueError(
                f"{wheel} must be the wheel of a plugin, with one {manifest.FILE_NAME}; it has"
                f" {len(names)}"
            )
        return manifest.parse(archive.read(names[0]).decode())


def _cpu_variant(plugin: Manifest) -> str:
    if plugin.platform == ANY_PLATFORM:
        return "torch-cpu"
    system, _, machine = plugin.platform.partition("_")
    return f"torch-stable-abi{plugin.torch_target.replace('.', '')}-cpu-{machine}-{system}"


def _write_variant(wheel: Path, plugin: Manifest, backend: str, variant: Path) -> None:
    try:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(variant / "wheel")
    except (zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"{wheel} is damaged: {error}; build or download it again") from error
    _check_libraries(wheel, plugin, variant)
    shutil.copyfile(HERE / "entry.py", variant / "__init__.py")
    layers = HERE / "layers" / f"{plugin.name}.py"
    if layers.is_file():
        shutil.copyfile(layers, variant / "layers.py")
    content = hashlib.sha256(wheel.read_bytes()).hexdigest()
    about = {
        "name": normalize_name(plugin.distribution),
        # The module's name in Python.
        "id": f"_{plugin.name}_{backend}_{content[:8]}",
        "version": int(plugin.version.partition(".")[0]),
        "license": _license(variant),
        "python-depends": [],
        "backend": {"type": backend},
        "digest": {"algorithm": "sha256", "files": _digests(variant)},
    }
    (variant / "metadata.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


def _check_libraries(wheel: Path, plugin: Manifest, variant: Path) -> None:
    (path,) = variant.glob(f"wheel/*/{manifest.FILE_NAME}")
    for library in (plugin.library, plugin.ascendc):
        fault = library and library_file.find_fault(path.parent, library)
        if fault:
            raise ValueError(f"{wheel}: {fault}; build the wheel again")


def _license(variant: Path) -> str:
    (metadata,) = variant.glob("wheel/*.dist-info/METADATA")
    found: str = message_from_string(metadata.read_text("utf-8")).get("License-Expression", "")
    return found


def _digests(variant: Path) -> dict[str, str]:
    digests = {}
    for path in sorted(path for path in variant.rglob("*") if path.is_file()):
        digest = hashlib.sha256(path.read_bytes()).digest()
        digests[path.relative_to(variant).as_posix()] = base64.b64encode(digest).decode()
    return digests
