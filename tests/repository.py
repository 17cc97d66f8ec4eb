"""Where the repository is, and copies of sources to build."""

import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
THIRD_PARTY = ROOT / "tests" / "third_party"
BUILT = ("build", "*.egg-info", "__pycache__", "*.so", "custom_pypto_plugin.json", "ops.py")
PROJECT = """\
[build-system]
requires = ["custom-pypto-build", "custom-pypto-blocks"]
build-backend = "custom_pypto_build"

[project]
name = "acme-{name}"
version = "1.0.0"
dependencies = ["custom-pypto-core"]

[project.entry-points."custom_pypto.plugins"]
acme_{name} = "acme_{name}"

[tool.setuptools.packages.find]
where = ["src"]

[tool.custom-pypto]
sources = ["csrc/*.cpp"]
include-packages = ["custom_pypto_blocks"]
"""


def copy_sources(source: Path, folder: Path) -> Path:
    """Copy the project in `source` into `folder`, without what was built in it; give `folder`.

    Two test runs that share a checkout would otherwise build in each other's folders.
    """
    return shutil.copytree(source, folder, ignore=shutil.ignore_patterns(*BUILT))


def write_project(source: Path, folder: Path, name: str) -> Path:
    """Write a plugin of third_party that has sources alone as a project with a name of its own."""
    copy_sources(source, folder)
    (folder / "pyproject.toml").write_text(PROJECT.format(name=name), encoding="utf-8")
    package = folder / "src" / f"acme_{name}"
    if hooks := [*folder.glob("src/*")]:
        hooks[0].rename(package)
    else:
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("from .ops import *\n", encoding="utf-8")
    return folder
