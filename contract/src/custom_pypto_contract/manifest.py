"""The manifest: what a plugin's wheel says about itself, readable without running any of its code.

It is the file ``custom_pypto_plugin.json`` in the plugin's top-level package. `custom_pypto_build`
writes it after linking; core reads it before it imports the plugin or opens its library.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from . import abi
from .errors import ContractError
from .op_name import OP_NAME, parts_of_schema

GROUP = "custom_pypto.plugins"
"""The entry point group: ``<plugin> = "<module>"`` in a plugin's pyproject.toml."""
FILE_NAME = "custom_pypto_plugin.json"
ANY_PLATFORM = "any"
ASCENDC_SUFFIX = "_ascendc"
"""Ends the name of a library with AscendC kernels, after the plugin's; kernel_search.h has it."""

OPP_LIBRARY = PurePosixPath("op_api/lib/libcust_opapi.so")
"""Where an opp package has the library of its kernels; kernel_search.h has it too."""

PLUGIN_NAME = r"[a-z][a-z0-9_]*"
ARCHITECTURE = r"[A-Za-z0-9.-]+"

EMPTY_CONTRACT: Mapping[str, Any] = {
    "summary": "",
    "definition": "",
    "random": False,
    "tensors": [],
    "rules": [],
    "outputs": None,
    "flops": None,
    "bytes": None,
    "descriptions": {},
    "groups": {},
    "templates": {},
    "npu": {"limits": {}, "supports": {}, "launch": [], "graph": []},
}
"""The data of a contract that has no more than a schema."""

ADDED_KEYS = frozenset({"flops", "bytes", "random"})
"""Keys that the first contracts did not have; a manifest without one has that of EMPTY_CONTRACT."""


class ManifestError(ValueError):
    """A manifest is missing, unreadable or not valid; the text names the file and the key."""


@dataclass(frozen=True)
class ManifestOp:
    """An op in a manifest: its name, with the overload when it has one (``foo.bar``), and schema.

    `contract` is the rest of its contract. `data` is all of it, as
    `custom_pypto_contract.contract_data.read_contract` takes it.
    """

    name: str
    schema: str
    contract: Mapping[str, Any] = field(default_factory=lambda: EMPTY_CONTRACT)

    @property
    def data(self) -> Mapping[str, Any]:
        """The data of its contract."""
        return {"schema": self.schema, **self.contract}


@dataclass(frozen=True)
class Library:
    """The plugin's library: path relative to the manifest's folder, and hash of its bytes."""

    path: str
    sha256: str


@dataclass(frozen=True)
class AscendcLibrary(Library):
    """The library of the plugin's AscendC kernels, and the NPUs that it is for: ``dav-2201``."""

    architecture: str


@dataclass(frozen=True)
class Manifest:
    """A plugin as its wheel describes it.

    A plugin whose kernels are all Python has the `platform` `ANY_PLATFORM` and no `library`.
    `ascendc` is None where the wheel was built without CANN. `opp` is the folder of an opp package
    relative to the manifest's folder, or None. `requires_ops` are ops of other plugins that this
    plugin needs. `kernels` are the dispatch keys of devices for which each op has a kernel; None
    where the build did not import the plugin.
    """

    name: str
    distribution: str
    version: str
    core_abi: tuple[int, int]
    torch_target: str
    platform: str
    ops: tuple[ManifestOp, ...]
    requires_ops: tuple[str, ...]
    library: Library | None
    opp: str | None = None
    ascendc: AscendcLibrary | None = None
    kernels: Mapping[str, Sequence[str]] | None = None

    def to_json(self) -> str:
        """Return the text of the manifest file; the same manifest always gives the same text."""
        ops = [{"name": op.name, **op.data} for op in self.ops]
        versions = {
            "manifest_version": abi.MANIFEST_VERSION,
            "contract_version": abi.CONTRACT_VERSION,
        }
        return json.dumps({**versions, **asdict(self), "ops": ops}, indent=1) + "\n"

    def write(self, path: Path) -> None:
        """Write the manifest to `path`, whose folder must exist."""
        path.write_text(self.to_json(), encoding="utf-8")


def is_plugin_name(name: str) -> bool:
    """Whether `name` can name a plugin: lower case letters, digits, ``_``; a letter first."""
    return re.fullmatch(PLUGIN_NAME, name) is not None


def is_architecture(name: str) -> bool:
    """Whether `name` can name the NPUs that AscendC kernels are for, as in a file's name."""
    return re.fullmatch(ARCHITECTURE, name) is not None


def is_op_name(name: str) -> bool:
    """Whether `name` can name an op, with or without overload, without a namespace."""
    return OP_NAME.fullmatch(name) is not None


def make_op(data: Mapping[str, Any]) -> ManifestOp:
    """Return the op of a contract's data; EMPTY_CONTRACT has what `data` leaves out.

    Raises:
        ManifestError: the schema is not ``name(arguments) -> returns``, or has a namespace.
    """
    try:
        name, _, _ = parts_of_schema(data["schema"])
    except ContractError as error:
        raise ManifestError(str(error)) from None
    said = {key: value for key, value in data.items() if key in EMPTY_CONTRACT}
    return ManifestOp(name, data["schema"], {**EMPTY_CONTRACT, **said})
