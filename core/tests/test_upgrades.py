"""Plugins that pip replaces or removes: the right one loads, or following the advice mends it."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import scratch
from fork_server import ForkServer
from plugin_factory import Installed, Site

STATES = """
import json, warnings
warnings.simplefilter("ignore")
import custom_pypto.core as core
print(json.dumps([[p.version, p.status, p.reason] for p in core.plugins()]))
"""


@dataclass
class Place:
    """An environment that pip installs the plugin `first` into, and the wheels that it finds."""

    environment: scratch.Scratch
    wheels: Path
    server: ForkServer

    def wheel(self, version: str) -> None:
        """Make a wheel of a plugin with Python kernels only."""
        files = self.wheels / f"{version}.files"
        files.mkdir()
        site = Site(files, self.server, Path())
        plugin = site.install("first", "import torch\n", version=version, with_library=False)
        (plugin.dist_info / "WHEEL").write_text("Wheel-Version: 1.0\nTag: py3-none-any\n")
        (plugin.dist_info / "RECORD").touch()
        wheel = self.wheels / f"custom_pypto_first-{version}-py3-none-any.whl"
        names = [str(each.relative_to(files)) for each in files.rglob("*") if each.is_file()]
        (plugin.dist_info / "RECORD").write_text("".join(f"{name},,\n" for name in names))
        Path(shutil.make_archive(str(wheel), "zip", files)).rename(wheel)

    def pip(self, command: str) -> None:
        """Run a command of pip's as a user would, with the wheels as the index."""
        pip, action, *arguments = command.split()
        assert pip == "pip"
        source = ["--no-index", "--find-links", str(self.wheels)] if action == "install" else ["-y"]
        python = [sys.executable, "-m", "pip", "--python", str(self.environment.python), "-q"]
        subprocess.run([*python, action, *source, *arguments], check=True, capture_output=True)

    def states(self) -> Any:
        """Load what is installed; return versions, states and reasons."""
        done = self.server.run(STATES, [self.environment.site_packages], {})
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@pytest.fixture
def place(tmp_path: Path, server: ForkServer) -> Place:
    """An empty environment."""
    (tmp_path / "wheels").mkdir()
    environment = scratch.create(tmp_path / "venv", tmp_path / "nothing")
    return Place(environment, tmp_path / "wheels", server)


# The installed version, what is done to the plugin, and a part of the reason.
DAMAGES: dict[str, tuple[str, Callable[[Installed], object], str]] = {
    "older core": ("1.0", lambda plugin: plugin.forge(core_abi=[0, 9]), "requires core ABI 0.9"),
    "package without manifest": ("2.0", lambda plugin: plugin.manifest.unlink(), "no manifest: "),
    "metadata without a version": (
        "2.0",
        lambda plugin: (plugin.dist_info / "METADATA").write_text("Name: custom-pypto-first\n"),
        "its metadata gives no version",
    ),
}


@pytest.mark.parametrize(("version", "damage", "reason"), DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_or_old_plugin_is_mended_by_the_advice(
    place: Place, version: str, damage: Callable[[Installed], object], reason: str
) -> None:
    for each in {version, "2.0"}:
        place.wheel(each)
    place.pip(f"pip install custom-pypto-first=={version}")
    site = place.environment.site_packages
    (metadata,) = site.glob("*.dist-info")
    damage(Installed(site / "custom_pypto_first", metadata))
    ((_, status, said),) = place.states()
    assert status == "rejected"
    assert reason in said
    for command in re.findall(r"rm -r [^,]+", said):
        subprocess.run(command, shell=True, check=True)
    (advised,) = re.findall(r"pip install [^;'`]+", said)
    place.pip(advised)
    assert place.states() == [["2.0", "loaded", ""]]
