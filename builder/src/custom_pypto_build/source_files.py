"""The files of a plugin's source tree that are neither Python nor built, and putting files."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from custom_pypto_contract import ops_file

from .errors import BuildError
from .settings import Settings

HEADER_SUFFIXES = (".h", ".hh", ".hpp", ".hxx", ".inc", ".inl", ".ipp", ".tpp", ".def")


def of_distribution(plugin: Settings) -> list[str]:
    """Return the files of a source distribution: contract, sources, headers, opp folder.

    It has the sources of every machine and of simulated kernels. Headers are looked for below
    `include_dirs` and beside each source.
    """
    compiled = {*plugin.sources, *plugin.isa_sources, *plugin.ascendc_sources}
    sources = compiled | plugin.simulated_sources
    files = {ops_file.FILE_NAME, *sources}
    for folder in plugin.include_dirs:
        files |= {f for f in below(plugin.root, folder) if f.endswith(HEADER_SUFFIXES)}
    for beside in {(plugin.root / source).parent for source in sources}:
        headers = (f for f in beside.iterdir() if f.suffix in HEADER_SUFFIXES)
        files |= {header.relative_to(plugin.root).as_posix() for header in headers}
    files |= set(below(plugin.root, plugin.opp))
    return sorted(files)


def below(root: Path, folder: str | None) -> list[str]:
    """The files below `folder`, relative to `root`; none when `folder` is None."""
    if folder is None:
        return []
    return sorted(f.relative_to(root).as_posix() for f in (root / folder).rglob("*") if f.is_file())


def link(source: Path, target: Path) -> None:
    """Make `target` a symbolic link to the folder `source`, unless it is that folder.

    Raises:
        BuildError: something else is at `target`.
    """
    if target.is_symlink():
        target.unlink()
    elif target.exists():
        if target.samefile(source):
            return
        raise BuildError(
            f"{target} is in the way: an editable install puts a link to {source} there; rename it"
        )
    target.symlink_to(os.path.relpath(source.resolve(), target.parent.resolve()))


def replace(source: Path, target: Path) -> None:
    """Copy without writing into a file that a running process may have loaded."""
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    shutil.copyfile(source, temporary)
    temporary.chmod(0o755)
    temporary.replace(target)
