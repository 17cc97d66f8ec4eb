"""Which sources are broken, what is built after a break, and which tests are the nearest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from . import cpp_rules, python_rules
from .mutant import Mutant


@dataclass(frozen=True)
class Room:
    """Sources, as patterns of paths in the repository, and how their breaks are tested.

    `share` is the number of its mutants in a full run. `tests` are run first, as most breaks
    fail there; ``{project}`` stands for the folder of the broken source's distribution, as in
    `builds`, the distributions to build again.
    """

    name: str
    share: int
    sources: Sequence[str]
    tests: Sequence[str]
    builds: Sequence[str]
    without: Sequence[str] = ()

    def files(self, root: Path) -> list[Path]:
        """Return the sources, relative to `root`."""
        found = {file.relative_to(root) for pattern in self.sources for file in root.glob(pattern)}
        return sorted(each for each in found if not any(map(each.match, self.without)))

    def mutants(self, root: Path) -> Iterator[Mutant]:
        """Return every break of the sources."""
        for file in self.files(root):
            rules = python_rules if file.suffix == ".py" else cpp_rules
            yield from rules.mutants(file, (root / file).read_text(encoding="utf-8"))


_INCLUDE = "core/src/custom_pypto/core/include/custom_pypto"
_PLUGINS = ("plugins/*",)
_OWN = ("{project}",)

ROOMS = (
    Room(
        "contract",
        20,
        ["contract/src/**/*.py"],
        [
            "contract/tests",
            "builder/tests/test_ops_header.py",
            "core/tests/test_testing_contract.py",
        ],
        builds=_OWN,
    ),
    Room("builder", 15, ["builder/src/**/*.py"], ["builder/tests"], builds=_OWN),
    Room("core", 30, ["core/src/**/*.py"], ["core/tests"], builds=_OWN),
    Room(
        "headers",
        15,
        [f"{_INCLUDE}/*.h", f"{_INCLUDE}/cpu/*.h"],
        ["core/tests", "plugins"],
        builds=_PLUGINS,
        # They are compiled for aarch64 only.
        without=["neon*.h"],
    ),
    Room(
        "kernels",
        20,
        ["plugins/*/csrc/**/*.cpp", "plugins/*/csrc/**/*.h"],
        ["{project}/tests"],
        builds=_OWN,
        # They need the simulator.
        without=["csrc/npu/*"],
    ),
    Room(
        "plugins",
        10,
        ["plugins/*/src/**/*.py"],
        ["{project}/tests"],
        builds=_OWN,
        # They are data of tests: another size is no break.
        without=["samples.py"],
    ),
    Room(
        "integrations",
        15,
        # The others need MindSpore or vLLM.
        [f"integrations/{name}/src/**/*.py" for name in ("kernels", "serving", "transformers")],
        ["integrations/serving", "integrations/transformers", "tests/test_kernels.py"],
        builds=_OWN,
    ),
)
