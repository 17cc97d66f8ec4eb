"""``custom-pypto stubs``: lets type checkers and editors know `torch.ops.custom_pypto`."""

from __future__ import annotations

import argparse
import shutil
import sysconfig
from importlib.util import find_spec
from pathlib import Path

from custom_pypto_contract import contract_data
from custom_pypto_contract.contract import OpContract
from custom_pypto_discovery import discovery, environment
from custom_pypto_discovery.installed_plugin import InstalledPlugin, Status

from custom_pypto_cli import distribution, op_stubs
from custom_pypto_cli.commands import CommandError
from custom_pypto_cli.terminal import show

SUMMARY = "write stubs, so that editors and type checkers know the ops"
DESCRIPTION = (
    "Writes the stub package torch-stubs, by which mypy, pyright and editors complete and check "
    "calls of torch.ops.custom_pypto. It has the ops that core would load now. Runs no plugin."
)
EXIT_STATUS = "0 written, 1 nothing was written"

_PACKAGE = "torch-stubs"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the folder, and ``--remove``."""
    parser.add_argument(
        "folder",
        metavar="FOLDER",
        nargs="?",
        type=Path,
        default=Path(sysconfig.get_path("purelib")),
        help="where to write it (default: site-packages, where mypy and pyright look)",
    )
    parser.add_argument(
        "--remove", action="store_true", help="remove what this command wrote instead"
    )


def run(options: argparse.Namespace) -> int:
    """Write the package, or remove it, and show what was done."""
    package: Path = options.folder / _PACKAGE
    stub = package / "_ops.pyi"
    try:
        if package.exists() and not _is_ours(stub):
            raise CommandError(
                f"{package} is not of this command, and was left as it is; give another FOLDER"
            )
        if options.remove:
            if package.exists():
                shutil.rmtree(package)
            show(f"removed {package}")
            return 0
        found = discovery.discover(environment.read())
        ops = [op for each in found if each.status is Status.ACCEPTED for op in _read(each)]
        text = _text(ops)
        package.mkdir(parents=True, exist_ok=True)
        # Of everything else, torch's own types hold.
        (package / "py.typed").write_text("partial\n", encoding="utf-8")
        stub.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CommandError(f"{package} cannot be used: {error}; give another FOLDER") from None
    show(f"{len(ops)} ops in {stub}")
    for each in found:
        if each.status is not Status.ACCEPTED:
            show(f"left out: {each.name}, which {each.status.verb}: {each.reason}")
    return 0


def _is_ours(stub: Path) -> bool:
    return stub.is_file() and stub.read_text(encoding="utf-8").startswith(op_stubs.MARK)


def _read(plugin: InstalledPlugin) -> list[OpContract]:
    try:
        return [contract_data.read_contract(op.data) for op in plugin.ops]
    except Exception as error:
        raise CommandError(
            f"the contracts in the manifest of {plugin.name} cannot be read:"
            f" {type(error).__name__}: {error}; reinstall the plugin"
        ) from None


def _text(ops: list[OpContract]) -> str:
    found = find_spec("torch")
    if found is None or not found.submodule_search_locations:
        raise CommandError("torch is not installed in this Python; `pip install torch`")
    source = Path(found.submodule_search_locations[0]) / "_ops.py"
    version = distribution.version("torch") or "?"
    try:
        return op_stubs.stub_text(source.read_text(encoding="utf-8"), version, ops)
    except (LookupError, SyntaxError) as error:
        raise CommandError(
            f"this command does not know torch {version}: {source}: {error}"
        ) from None
