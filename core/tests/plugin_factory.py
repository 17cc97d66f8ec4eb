"""Installs plugins into a folder, without pip or a build, and runs Python with that folder.

What is installed is what pip would leave there: metadata with an entry point, a package, a manifest
and a real library (plugin_library.c). A test may then change whatever it wants to be wrong.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import json
import os
import subprocess
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

import scratch
from custom_pypto_contract import abi, manifest, platforms
from custom_pypto_contract.manifest import GROUP
from fork_server import Done, ForkServer

CORE_PACKAGES = (
    "custom_pypto",
    "custom_pypto_contract",
    "custom_pypto_discovery",
    "custom_pypto_plugin",
)
"""Our packages that an import of core imports."""

_LOAD = """
import torch, custom_pypto.core as core
ops = torch.ops.custom_pypto
def refusal(function, *args, error=RuntimeError):
    try: function(*args)
    except error as caught: return str(caught)
"""
_ROOM = 1024
_PLACE = b"CUSTOM_PYPTO_TEXT_GOES_HERE"


def compile_library(folder: Path) -> Path:
    """Compile plugin_library.c into `folder`."""
    torch = Path(_origin("torch")).parent
    library = folder / "plugin_library.so"
    source = Path(__file__).with_name("plugin_library.c")
    core = Path(_origin("custom_pypto")).parent / "core" / "include"
    flags = [f"-I{core}", "-shared", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra", "-Werror"]
    link = [f"-L{torch / 'lib'}", "-Wl,--no-as-needed", "-ltorch_cpu"]
    compiler = os.environ.get("CC", "cc").split()
    subprocess.run([*compiler, *flags, source, *link, "-o", library], check=True)
    return library


@dataclass
class Installed:
    """A plugin in a `Site`."""

    package: Path
    dist_info: Path

    @property
    def manifest(self) -> Path:
        return self.package / manifest.FILE_NAME

    @property
    def library(self) -> Path:
        return self.package / "lib" / f"lib{self.package.name}.so"

    def forge(self, **changes: Any) -> None:
        """Change entries of the manifest."""
        document = json.loads(self.manifest.read_text(encoding="utf-8"))
        self.manifest.write_text(json.dumps({**document, **changes}), encoding="utf-8")


@dataclass
class Site:
    """A folder with installed plugins, and a Python that sees them and no other plugin."""

    folder: Path
    server: ForkServer
    template: Path

    def other(self, name: str) -> Site:
        """Return a site in a folder of this one; core does not look for plugins there."""
        return replace(self, folder=self.folder / name)

    def install(
        self,
        name: str,
        code: str = "",
        *,
        ops: Sequence[str] | None = None,
        registers: str | None = None,
        requires_ops: Sequence[str] = (),
        version: str = "0.1.0",
        with_library: bool = True,
    ) -> Installed:
        """Install a plugin whose ops, by default one of its own name, take and give a tensor.

        `code` is the source of its module. `ops` are names, or schemas of that type. `registers` is
        what the library registers when that is not what the manifest says: see plugin_library.c.
        Without a library the plugin is one whose kernels are Python.
        """
        package, distribution = f"custom_pypto_{name}", f"custom-pypto-{name.replace('_', '-')}"
        schemas = [
            op if "(" in op else f"{op}(Tensor x) -> Tensor"
            for op in ([name] if ops is None else ops)
        ]
        installed = Installed(self.folder / package, self.folder / f"{package}-{version}.dist-info")
        installed.package.mkdir(parents=True)
        (installed.package / "__init__.py").write_text(textwrap.dedent(code), encoding="utf-8")
        library = None
        if with_library:
            installed.library.parent.mkdir()
            contents = self._library("\n".join(schemas) if registers is None else registers)
            installed.library.write_bytes(contents)
            library = manifest.Library(
                f"lib/{installed.library.name}", hashlib.sha256(contents).hexdigest()
            )
        manifest.Manifest(
            name=name,
            distribution=distribution,
            version=version,
            core_abi=abi.CORE_ABI,
            torch_target="2.10",
            platform=platforms.platform_tag() if with_library else manifest.ANY_PLATFORM,
            ops=tuple(manifest.make_op({"schema": each}) for each in schemas),
            requires_ops=tuple(requires_ops),
            library=library,
        ).write(installed.manifest)
        installed.dist_info.mkdir()
        (installed.dist_info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n", encoding="utf-8"
        )
        (installed.dist_info / "entry_points.txt").write_text(
            f"[{GROUP}]\n{name} = {package}\n", encoding="utf-8"
        )
        return installed

    def run(self, *code: str, **variables: str) -> Any:
        """Run the parts of `code`, one after the other, in a new Python.

        They call ``give(value)`` with what this then returns.

        Warnings are errors unless `code` says otherwise. A failure raises AssertionError with what
        was written to standard error.
        """
        done = self.start(*code, **variables)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def load(self, code: str, *, quiet: bool = False, **variables: str) -> Any:
        """Import core in a new Python, run `code` there, and return its last expression.

        `code` finds the names ``torch``, ``core`` and ``ops``, and ``refusal(function, *args)``,
        which gives the text of the call's RuntimeError or None. With `quiet`, warnings are ignored.
        """
        *statements, last = ast.parse(textwrap.dedent(code)).body
        assert isinstance(last, ast.Expr), "the code must end in an expression"
        body = ast.unparse(ast.Module(statements, []))
        ignore = "import warnings; warnings.simplefilter('ignore')\n" if quiet else ""
        return self.run(ignore + _LOAD, body, f"give({ast.unparse(last)})", **variables)

    def start(self, *code: str, **variables: str) -> Done:
        """Run `code` as `run` does, whatever comes of it."""
        parts = ["import json\ndef give(value): print(json.dumps(value))", *code]
        return self.server.run("\n".join(map(textwrap.dedent, parts)), [self.folder], variables)

    def _library(self, registers: str) -> bytes:
        text = registers.encode(errors="surrogateescape") + b"\0"
        assert len(text) < _ROOM
        contents = self.template.read_bytes()
        start = contents.index(_PLACE)
        return contents[:start] + text + contents[start + len(text) :]


def lend(folder: Path) -> Path:
    """Fill `folder` with links to core and to what it needs, but to no plugin."""
    return link(scratch.lend(folder), *CORE_PACKAGES)


def link(folder: Path, *packages: str) -> Path:
    """Put links to `packages` into `folder`, with the entry points of their wheels; return it."""
    for package in packages:
        (folder / package).symlink_to(Path(_origin(package)).parent)
        name = package.replace("_cli", "_core")
        for wheel in metadata.distributions(name=name):
            (dist_info := folder / f"{name}-{wheel.version}.dist-info").mkdir(exist_ok=True)
            (dist_info / "METADATA").write_text(f"Name: {name}\nVersion: {wheel.version}\n")
            (dist_info / "entry_points.txt").write_text(wheel.read_text("entry_points.txt") or "")
    return folder


def _origin(package: str) -> str:
    spec = importlib.util.find_spec(package)
    assert spec is not None, package
    assert spec.origin is not None, package
    return spec.origin
