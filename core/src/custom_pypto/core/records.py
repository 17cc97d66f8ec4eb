"""The records of plugins and ops."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from custom_pypto_discovery.installed_plugin import Status

NAMESPACE = "custom_pypto"


@dataclass(frozen=True, slots=True)
class OpRecord:
    """An op of a plugin."""

    name: str
    """The name in `torch.ops.custom_pypto`, with the overload when it has one (``foo.bar``)."""
    schema: str
    """The schema without namespace, as the plugin declares it."""
    plugin: str
    """The name of the plugin that provides it."""
    dispatch_keys: tuple[str, ...]
    """The dispatch keys with kernels, such as ``CPU``, ``PrivateUse1`` (an NPU), ``Meta`` (the fake
    kernel) and ``Autograd``; empty while the plugin is not loaded."""


@dataclass(frozen=True, slots=True)
class PluginRecord:
    """An installed plugin."""

    name: str
    """The plugin's name, which is that of its entry point."""
    version: str
    """The version of its distribution; empty when its metadata is broken."""
    distribution: str
    """The name of its distribution, as ``pip`` takes it."""
    status: Status
    """Whether it is loaded."""
    reason: str
    """Why it is not loaded and what to do; empty when it is."""
    ops: tuple[OpRecord, ...]
    """Its ops by its manifest, loaded or not; empty when there is no valid manifest."""
    folder: Path | None
    """The folder of its package; None when it was not found."""
    library: Path | None
    """Its shared library; None when it has none, or no valid manifest."""
    library_sha256: str
    """The SHA-256 of its library by its manifest; empty when it has none. A plugin whose library
    has another one is rejected."""
    opp: Path | None
    """The folder of the opp package that it ships; None when it ships none."""
    load_time: float
    """Seconds spent loading it; 0.0 when that was not tried."""
