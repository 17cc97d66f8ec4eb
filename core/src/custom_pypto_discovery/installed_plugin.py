"""One installed plugin, before any of its code runs."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path

from custom_pypto_contract.fork_locks import cached
from custom_pypto_contract.manifest import GROUP, Manifest, ManifestOp

from custom_pypto_discovery.printable import shorten

LOADING_ATTRIBUTE = "custom_pypto_loading"
"""Log records of the begin and the end of loading have it: the plugin's name, or ''."""


class Status(str, Enum):
    """The state of a plugin; a string, so that ``plugin.status == "loaded"`` holds."""

    ACCEPTED = "accepted"
    """Nothing is wrong with its files; it loads with the import of core."""
    LOADED = "loaded"
    """Its ops can be called."""
    BLOCKED = "blocked"
    """CUSTOM_PYPTO_PLUGINS or CUSTOM_PYPTO_DISABLE keeps it, or a plugin it needs, from loading."""
    REJECTED = "rejected"
    """Its files, or another plugin, forbid to load it; nothing of it ran."""
    FAILED = "failed"
    """It failed while it loaded; nothing of it is registered any more."""

    def __str__(self) -> str:
        return self.value

    @property
    def verb(self) -> str:
        """The predicate of a sentence about the plugin: "is blocked", "failed"."""
        return "failed" if self is Status.FAILED else f"is {self}"


@dataclass(frozen=True)
class InstalledPlugin:
    """A distribution with an entry point of ours; an unknown field is empty or None.

    `name` is the entry point's and `module` what it names, `folder` that of the top-level package
    and `metadata` that of the distribution. `library_state` is what `library_file.state` gave
    before the library was read. Why it does not load, if it does not, is the `reason`.
    """

    name: str
    module: str
    distribution: str
    version: str
    folder: Path | None = None
    metadata: Path | None = None
    manifest: Manifest | None = None
    library_state: tuple[int, ...] = ()
    status: Status = Status.ACCEPTED
    reason: str = ""

    @property
    def package(self) -> str:
        """The top-level package."""
        return self.module.partition(".")[0]

    @property
    def ops(self) -> tuple[ManifestOp, ...]:
        """Its ops by its manifest."""
        return () if self.manifest is None else self.manifest.ops

    @cached
    def families(self) -> tuple[str, ...]:
        """The names of its ops without overload, each once."""
        return tuple(dict.fromkeys(op_family(op.name) for op in self.ops))

    @property
    def requires_ops(self) -> tuple[str, ...]:
        """The ops of other plugins without which it cannot work."""
        return () if self.manifest is None else self.manifest.requires_ops

    @property
    def order(self) -> tuple[str, str, str]:
        """The key by which plugins are sorted, so that messages are the same on each run."""
        return normalize_name(self.distribution), self.name, self.module

    def explain_module(self) -> str:
        """Return why what the entry point names can be no module, '' if it can."""
        if all(part.isidentifier() for part in self.module.split(".")):
            return ""
        return (
            f"the entry point {self.name!r} in the group {GROUP!r} names {self.module!r};"
            " it must name a module, such as 'custom_pypto_add_custom'"
        )

    def block(self, reason: str) -> InstalledPlugin:
        """Return it as blocked for `reason`."""
        return replace(self, status=Status.BLOCKED, reason=reason)

    def reject(self, reason: str) -> InstalledPlugin:
        """Return it as rejected for `reason`, which may quote as much of its files as it has."""
        return replace(self, status=Status.REJECTED, reason=shorten(reason))


def op_family(op: str) -> str:
    """Return the name by which `torch.ops` shows the op: ``foo`` for ``foo`` and ``foo.bar``."""
    return op.partition(".")[0]


def reinstall(distribution: str) -> str:
    """Return the advice for a distribution whose files differ from its wheel's."""
    return f"reinstall it: {install_again(distribution)}"


def install_again(requirement: str) -> str:
    """Return the command that installs the files of a wheel, whatever is installed."""
    return f"pip install --force-reinstall --no-deps {shlex.quote(requirement)}"


def upgrade(distribution: str) -> str:
    """Return the command that installs the newest version."""
    return f"pip install --upgrade {shlex.quote(distribution)}"


def uninstall(distribution: str) -> str:
    """Return the command that removes a distribution."""
    return f"pip uninstall {shlex.quote(distribution)}"


def describe_missing_kernel(op: str, distribution: str) -> tuple[str, str]:
    """Return what is wrong with an op that has no kernel for any device, and what to do."""
    advice = (
        f"upgrade the plugin: {upgrade(distribution)}; its author registers kernels in C++ or by"
        " the hook custom_pypto_kernels"
    )
    return f"{op} has no kernel for any device: its plugin registers none", advice


def delete(folder: Path) -> str:
    """Return the advice for metadata that no plugin needs."""
    return f"delete it: rm -r {shlex.quote(str(folder))}"


def normalize_name(distribution: str) -> str:
    """Return the name of a distribution in the form in which names are compared."""
    return re.sub(r"[-_.]+", "-", distribution).lower()
