"""The wheel of a plugin: its metadata, manifest and library."""

from __future__ import annotations

import re
from email.message import Message
from email.parser import HeaderParser
from functools import cached_property
from pathlib import Path

from custom_pypto_contract import elf, manifest, manifest_file
from custom_pypto_contract.elf import ElfError, ElfLibrary
from custom_pypto_contract.manifest import GROUP, Library, Manifest, ManifestError
from custom_pypto_discovery import distributions

from custom_pypto_build.wheel_check.wheel_file import WheelError, WheelFile

_MOST_LIBRARY = 512 << 20


class PluginWheel:
    """A wheel, whose parts are read when they are used first."""

    def __init__(self, path: Path) -> None:
        """Open it.

        Raises:
            WheelError: it is no wheel that can be read.
        """
        self.file = WheelFile(path)
        folders = {name.partition("/")[0] for name in self.file.files}
        found = [name for name in folders if name.endswith(".dist-info")]
        if len(found) != 1:
            raise WheelError(f"must have one folder of metadata (.dist-info), and has {len(found)}")
        self.dist_info = found[0]
        self.headers = self._headers("METADATA")
        self.wheel_headers = self._headers("WHEEL")
        self.record = self.file.read_text(f"{self.dist_info}/RECORD")
        entry_points = self.file.read_text(f"{self.dist_info}/entry_points.txt")
        self.entry_points = tuple(distributions.parse_entry_points(entry_points, GROUP))

    @cached_property
    def package(self) -> str:
        """The top-level package that the entry point names; empty unless there is just one."""
        if len(self.entry_points) != 1:
            return ""
        return re.split(r"[.:\s]", self.entry_points[0][1])[0]

    @cached_property
    def manifest(self) -> Manifest | str:
        """The manifest, or what is wrong with it."""
        name = f"{self.package}/{manifest.FILE_NAME}"
        if not self.package or name not in self.file.files:
            return f"the wheel has no {name}; custom_pypto_build writes it"
        try:
            return manifest_file.parse(self.file.read_text(name))
        except (ManifestError, WheelError) as error:
            return f"{name}: {error}"

    @cached_property
    def library(self) -> ElfLibrary | str:
        """The library that the manifest names, or what is wrong with it; '' without one."""
        if isinstance(self.manifest, str) or self.manifest.library is None:
            return ""
        name = self.path_of(self.manifest.library)
        if name not in self.file.files:
            return f"the wheel has no {name}, which its manifest names"
        try:
            return elf.read(self.file.read(name, _MOST_LIBRARY))
        except (ElfError, WheelError) as error:
            return f"{name} {error}"

    def path_of(self, library: Library) -> str:
        """Return the path in the wheel of a library of the manifest."""
        return f"{self.package}/{library.path}"

    def _headers(self, name: str) -> Message:
        return HeaderParser().parsestr(self.file.read_text(f"{self.dist_info}/{name}"))
