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
    try:
        if package.exists() and not op_stubs.is_written(package):
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
        stub = op_stubs.write(package, _find_torch(), distribution.version("torch") or "", ops)
    except LookupError as error:
        raise CommandError(f"{error}; use a torch that this command knows") from None
    except OSError as error:
        raise CommandError(f"{package} cannot be used: {error}; give another FOLDER") from None
    show(f"{len(ops)} ops in {stub}")
    for each in found:
        if each.status is not Status.ACCEPTED:
            show(f"left out: {each.name}, which {each.status.verb}: {each.reason}")
    return 0


def _read(plugin: InstalledPlugin) -> list[OpContract]:
    try:
        return [contract_data.read_contract(op.data) for op in plugin.ops]
    except Exception as error:
        raise CommandError(
            f"the contracts in the manifest of {plugin.name} cannot be read:"
            f" {type(error).__name__}: {error}; reinstall the plugin"
        ) from None


def _find_torch() -> Path:
    found = find_spec("torch")
    if found is None or found.origin is None:
        raise CommandError("torch is not installed in this Python; run `pip install torch`")
    return Path(found.origin).parent
