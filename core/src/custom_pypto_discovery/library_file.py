"""Whether the libraries of a package are as they were built and as its manifest names them."""

# With many plugins, Path would take half of the time.
# ruff: noqa: PTH208

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from custom_pypto_contract import small_file
from custom_pypto_contract.manifest import ASCENDC_SUFFIX, Library, Manifest
from custom_pypto_contract.small_file import UnsuitableFileError

_CHUNK = 1 << 20


def find_fault(folder: Path, library: Library) -> str:
    """Return what is wrong with `library` in the package `folder`; empty when nothing is."""
    given = f"{folder}/{library.path}"
    try:
        path = os.path.realpath(given, strict=True)
        if not path.startswith(f"{os.path.realpath(folder, strict=True)}/"):
            return (
                f"its library {library.path} leads out of its package, to {path}; a library must"
                " be a file of its own package"
            )
        sha256 = sha256_of(path)
    except FileNotFoundError:
        return f"its library {given} is missing"
    except UnsuitableFileError as error:
        return f"its library {given} {error}"
    except (OSError, RuntimeError) as error:
        return f"its library {given} cannot be read: {error}"
    if sha256 == library.sha256:
        return ""
    return (
        f"its library {path} is not the one it was built with: sha256 {sha256[:16]}..., the"
        f" manifest says {library.sha256[:16]}..."
    )


def state(path: Path) -> tuple[int, ...]:
    """Return what changes whenever the file `path` is replaced or written; empty without a file."""
    try:
        found = path.stat()
    except OSError:
        return ()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def find_unnamed(folder: Path, manifest: Manifest) -> str:
    """Return the fault of a library that the plugin would open and no manifest names; '' if none.

    The libraries of `manifest` have no fault.
    """
    if manifest.library is None:
        return ""
    # As kernel_search.h looks for them.
    library = Path(os.path.realpath(f"{folder}/{manifest.library.path}"))
    beside = library.parents[1] / "lib"
    try:
        names = sorted(os.listdir(beside))
    except OSError:
        # The plugin cannot read it either.
        return ""
    for name in names:
        if name.startswith(f"{library.stem}{ASCENDC_SUFFIX}_") and name.endswith(".so"):
            path = beside / name
            named = manifest.ascendc and (folder / manifest.ascendc.path).resolve()
            if path.resolve() != named:
                return (
                    f"its package has {path}, a library of AscendC kernels that its manifest does"
                    " not name; delete that file"
                )
    return ""


def sha256_of(path: str | Path) -> str:
    """Return the SHA-256 of the regular file `path`, in hexadecimal.

    Raises:
        OSError: it is no regular file, or cannot be read.
    """
    found = hashlib.sha256()
    with os.fdopen(small_file.open_regular(path), "rb") as file:
        while chunk := file.read(_CHUNK):
            found.update(chunk)
    return found.hexdigest()
