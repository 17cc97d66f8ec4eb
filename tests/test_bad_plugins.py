"""Plugins that are broken, each in its own way, all installed at once beside two good ones.

Those that end the process or hang it are tried one by one. A folder of bad_plugins/ is named for
what is wrong. It holds the files that differ from template/ (ops.toml, plugin.cpp, a Python module)
and bad.toml with these keys:

- `status`: the state that custom_pypto gives it; ``ends`` if loading it ends or hangs the process
- `reason`: the text that custom_pypto shows; ``{package}`` stands for the folder of the installed
  package, ``{rest}`` for any text, another word in braces for one word that depends on the machine
  (with ``ends``: how the process ends)
- `is_silent`: the process cannot say what ended it
- `plugin`: its name, if that is not the folder's
- `requires-ops`: as in pyproject.toml
- `has_library`: its kernel is C++
- `registers`: what its library registers, and faults of a static initialiser: plugin_library.c
- `environment`: variables while it is built
- `is_refused_by_build`: the build refuses it too
- `spoil`: a shell command that breaks the installed package, run in its folder
- `forged`: values that replace those of the installed manifest
- `rehashed`: the manifest gets the hash of the library as `spoil` left it

Only those that need it are built; the files of the others are written as pip would leave them.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import plugin_factory
import pytest
from custom_pypto_cli.subprocess_call import describe_status
from custom_pypto_discovery.printable import escape
from distributions import tomllib
from fork_server import ForkServer
from loading import END_A_HANG
from plugin_factory import Site
from repository import ROOT, copy_sources
from scratch import Scratch

BAD_PLUGINS = ROOT / "tests" / "bad_plugins"
GOOD_PLUGIN = ROOT / "tests" / "third_party" / "scale_shift"

# Leaves a trace of code that core refused.
RUNS = """
import pathlib
(pathlib.Path(__file__).parent / "has_run").touch()
"""

REPORT = """\
import json, warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import custom_pypto.core as core
import torch

def touched(op):
    try:
        return str(getattr(torch.ops.custom_pypto, op))
    except AttributeError as error:
        return f"{type(error).__name__}: {error}"

print(json.dumps({
    "warnings": [
        [warning.category.__name__, str(warning.message)]
        for warning in caught
        if issubclass(warning.category, core.PluginWarning)
    ],
    "opened": open("/proc/self/maps").read(),
    "plugins": {
        plugin.distribution: {"status": str(plugin.status), "reason": plugin.reason}
        for plugin in core.plugins()
    },
    "touched": {op: touched(op) for op in OPS},
    "add_custom": torch.ops.custom_pypto.add_custom(torch.ones(2), torch.ones(2)).tolist(),
    "scale_shift": torch.ops.custom_pypto.scale_shift(torch.ones(2), 3.0, 1.0).tolist(),
}))
"""


@dataclass(frozen=True)
class BadPlugin:
    """One folder of bad_plugins/."""

    folder: Path
    expected: dict[str, Any]

    @property
    def name(self) -> str:
        """The distribution's name, which is the folder's."""
        return self.folder.name

    @property
    def package(self) -> str:
        """The package, which is also the op's name."""
        return self.name.replace("-", "_")

    def reason(self, environment: Scratch | None) -> re.Pattern[str]:
        """The reason that custom_pypto must show in `environment`; None: in any folder."""
        known = {"rest": ".*"}
        if environment is not None:
            known["package"] = re.escape(str(environment.site_packages / self.package))
        parts = re.split(r"\{(\w+)\}", self.expected["reason"])
        # Every other part is the word of a pair of braces.
        patterns = [
            known.get(part, r"\S+") if number % 2 else re.escape(part)
            for number, part in enumerate(parts)
        ]
        return re.compile("".join(patterns), re.DOTALL)

    @property
    def is_refused_by_build(self) -> bool:
        """Whether the build refuses it too."""
        return bool(self.expected.get("is_refused_by_build", False))

    def write(self, project: Path) -> None:
        """Write its project into the folder `project`."""
        shutil.copytree(BAD_PLUGINS / "template", project)
        for name in ("module.py", "ops.toml", "plugin.cpp"):
            if (self.folder / name).exists():
                shutil.copy(self.folder / name, project)
        if (project / "module.py").exists():
            (project / self.package).mkdir()
            (project / "module.py").rename(project / self.package / "__init__.py")
        pyproject = project / "pyproject.toml"
        if "plugin.cpp" not in {path.name for path in self.folder.iterdir()}:
            (project / "plugin.cpp").unlink()
            pyproject.write_text(pyproject.read_text().replace('sources = ["plugin.cpp"]\n', ""))
        words = {
            "NAME": self.name,
            "PACKAGE": self.package,
        }
        for file in filter(Path.is_file, project.iterdir()):
            text = re.sub(rf"\b({'|'.join(words)})\b", lambda m: words[m[1]], file.read_text())
            file.write_text(text)

    @property
    def is_built(self) -> bool:
        """Whether it takes a build to make it."""
        sources = {"ops.toml", "plugin.cpp"}
        return self.is_refused_by_build or bool(
            sources & {each.name for each in self.folder.iterdir()}
        )

    def place(self, site: Site) -> None:
        """Write what a build and pip would leave into `site`."""
        module = self.folder / "module.py"
        code = module.read_text(encoding="utf-8") if module.exists() else ""
        if self.expected["status"] == "rejected":
            code += RUNS
        site.install(
            self.expected.get("plugin", self.package),
            code,
            ops=[self.package],
            registers=self.expected.get("registers"),
            requires_ops=self.expected.get("requires-ops", ()),
            distribution=self.name,
            package=self.package,
            with_library="registers" in self.expected or "has_library" in self.expected,
        )

    def spoil(self, site: Path) -> None:
        """Break what is installed in `site`, as bad.toml says."""
        package = site / self.package
        if "spoil" in self.expected:
            subprocess.run(self.expected["spoil"], shell=True, cwd=package, check=True)
        if "forged" in self.expected:
            manifest = package / "custom_pypto_plugin.json"
            document = json.loads(manifest.read_text(encoding="utf-8"))
            manifest.write_text(json.dumps({**document, **self.expected["forged"]}))
        if "rehashed" in self.expected:
            manifest = package / "custom_pypto_plugin.json"
            document = json.loads(manifest.read_text(encoding="utf-8"))
            library = package / document["library"]["path"]
            document["library"]["sha256"] = hashlib.sha256(library.read_bytes()).hexdigest()
            manifest.write_text(json.dumps(document))


EVERY = [
    BadPlugin(path.parent, tomllib.loads(path.read_text(encoding="utf-8")))
    for path in sorted(BAD_PLUGINS.glob("*/bad.toml"))
]
BAD = [bad for bad in EVERY if bad.expected["status"] != "ends"]
ENDING = [bad for bad in EVERY if bad not in BAD]
each_bad_plugin = pytest.mark.parametrize("bad", BAD, ids=[bad.name for bad in BAD])


@dataclass(frozen=True)
class Installed:
    """An environment with core, two good plugins and every bad one.

    `refusals` are the errors of the builds that refused a plugin.
    """

    environment: Scratch
    refusals: dict[str, str]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return plugin_factory.compile_library(tmp_path_factory.mktemp("library"))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkServer]:
    folder = tmp_path_factory.mktemp("server")
    started = ForkServer([plugin_factory.lend(folder / "site-packages")], folder)
    yield started
    started.close()


@pytest.fixture(scope="module")
def installed(
    tmp_path_factory: pytest.TempPathFactory,
    new_environment: Callable[..., Scratch],
    wheel: Callable[[str], Path],
    server: ForkServer,
    library: Path,
) -> Installed:
    """Build and install all of them that leave the process alone."""
    root = tmp_path_factory.mktemp("bad")
    made = new_environment("custom_pypto_build")
    refusals = {}

    def build(name: str, variables: dict[str, str]) -> Path:
        return made.build_wheel(root / "sources" / name, root / "wheels" / name, variables)

    def build_bad(bad: BadPlugin) -> Path:
        bad.write(root / "sources" / bad.name)
        variables = bad.expected.get("environment", {})
        if bad.is_refused_by_build:
            with pytest.raises(AssertionError) as caught:
                build(bad.name, variables)
            refusals[bad.name] = str(caught.value)
        return build(bad.name, {**variables, "CUSTOM_PYPTO_BUILD_CHECK": "0"})

    copy_sources(GOOD_PLUGIN, root / "sources" / "good")
    builds = [bad for bad in BAD if bad.is_built]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        wheels = [pool.submit(build, "good", {}), *(pool.submit(build_bad, bad) for bad in builds)]
    made.install(wheel("custom_pypto_add_custom"), *(built.result() for built in wheels))
    site = Site(made.site_packages, server, library)
    for bad in BAD:
        if not bad.is_built:
            bad.place(site)
        bad.spoil(made.site_packages)
    return Installed(made, refusals)


@pytest.fixture(scope="module")
def environment(installed: Installed) -> Scratch:
    return installed.environment


@pytest.fixture(scope="module")
def report(environment: Scratch) -> dict[str, Any]:
    """The report of a process that imported core."""
    ops = [bad.package for bad in BAD]
    loaded: dict[str, Any] = json.loads(
        environment.run("-c", f"OPS = {ops}\n{REPORT}").stdout.splitlines()[-1]
    )
    return loaded


def test_the_good_plugins_work(report):
    assert report["add_custom"] == [2.0, 2.0]
    assert report["scale_shift"] == [4.0, 4.0]
    good = {"custom-pypto-add-custom", "acme-scale-shift"}
    assert {report["plugins"][name]["status"] for name in good} == {"loaded"}


@each_bad_plugin
def test_it_is_set_aside_and_explained(bad, report, environment):
    plugin = report["plugins"][bad.name]
    assert plugin["status"] == bad.expected["status"]
    assert bad.reason(environment).fullmatch(plugin["reason"]), plugin["reason"]


@pytest.mark.parametrize(
    "bad", [each for each in BAD if each.is_refused_by_build], ids=lambda bad: bad.name
)
def test_the_build_refuses_it_with_the_same_words(bad, installed):
    # pip indents what the build says.
    error = " ".join(installed.refusals[bad.name].split())
    assert f"error: the plugin {bad.package!r} is refused: " in error
    assert bad.reason(None).search(error), error


@each_bad_plugin
def test_touching_its_op_explains(bad, report, environment):
    error = report["touched"][bad.package]
    assert error.startswith("AttributeError: ")
    assert bad.reason(environment).search(error), error


def test_list_shows_each_reason(environment, report):
    lines = environment.custom_pypto("list").stdout.splitlines()
    for bad in BAD:
        for line in report["plugins"][bad.name]["reason"].splitlines():
            assert f"  {escape(line)}" in lines


def test_nothing_of_a_rejected_plugin_runs(report, environment):
    rejected = [bad for bad in BAD if bad.expected["status"] == "rejected"]
    assert len(rejected) > 20
    for bad in rejected:
        assert not (environment.site_packages / bad.package / "has_run").exists(), bad.name
        assert f"/{bad.package}/" not in report["opened"], bad.name


@pytest.mark.parametrize("bad", ENDING, ids=lambda bad: bad.name)
def test_the_last_words_of_the_process_name_it(bad, server, library, tmp_path):
    site = Site(tmp_path, server, library)
    bad.place(site)
    bad.spoil(tmp_path)
    reason = bad.expected["reason"]
    hangs = reason == "did not end"
    quick = [END_A_HANG] if hangs else []
    done = site.start(*quick, "import custom_pypto.core\nprint('went on')")
    named = f"the plugin {bad.package!r} is loading; CUSTOM_PYPTO_DISABLE={bad.package} skips it"
    assert "went on" not in done.stdout
    assert "Timeout (" in done.stderr if hangs else reason == describe_status(done.returncode)
    assert (named in done.stderr) is not bad.expected.get("is_silent", False)
    disabled = site.start("import custom_pypto.core", CUSTOM_PYPTO_DISABLE=bad.package)
    assert disabled.returncode == 0, disabled.stderr


ENDING_THREE = ("half-a-library", "silent-exit", "endless-wait")


def test_list_and_info_survive_and_name_those_that_end_the_process(
    new_environment, server, library
):
    environment = new_environment("custom_pypto_add_custom")
    site = Site(environment.site_packages, server, library)
    chosen = [bad for bad in ENDING if bad.name in ENDING_THREE]
    for bad in chosen:
        bad.place(site)
        bad.spoil(environment.site_packages)
    done = environment.custom_pypto("list", "--json", "--time-limit", "8")
    plugins = {each["distribution"]: each for each in json.loads(done.stdout)["plugins"]}
    assert plugins["custom-pypto-add-custom"]["status"] == "loaded"
    assert len(chosen) == len(plugins) - 1 == 3
    for bad in chosen:
        plugin = plugins[bad.name]
        assert plugin["status"] == "failed"
        assert plugin["ops"][0]["name"] == bad.package
        how = f"loading it ended the process: {bad.expected['reason']}"
        assert plugin["reason"].startswith(how), plugin["reason"]
        advice = f"set CUSTOM_PYPTO_DISABLE={bad.package}, or pip uninstall {bad.name}"
        assert plugin["reason"].endswith(f"\n{advice}")
    # One that another variable blocks is not tried.
    others = ",".join(bad.package for bad in chosen if bad.name != "silent-exit")
    variables = {"CUSTOM_PYPTO_DISABLE": others}
    shown = environment.custom_pypto("info", "silent-exit", environment=variables).stdout
    assert "status        failed\n" in shown
    assert "ended with status 0 before it was done" in shown


def test_doctor_shows_each_as_a_problem(environment):
    done = environment.custom_pypto("doctor", "--json", check=False)
    assert done.returncode == 1
    plugins = json.loads(done.stdout)["sections"]["plugins"]
    problems = [probe for probe in plugins if probe["level"] == "problem"]
    assert len(problems) == len(BAD)
    for bad in BAD:
        (own,) = (probe for probe in problems if probe["advice"].endswith(f" {bad.name}"))
        assert bad.reason(environment).search(own["remark"])
