"""Wrong kernels of the plugins in third_party: their sources with one fault each.

The faults of a plugin are built as one plugin, from one source, whose ops have the fault's number
behind their names. One run of the conformance suite tests all plugins' faults.
"""

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from repository import write_project

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


# Ends the suite of an op at its first failure. The file has which test that was, and how many tests
# have passed. No kernel ends the process: each reads and writes allocated memory only.
_CONFTEST = """\
import json
import pytest
from pathlib import Path

CAUGHT, PASSED = {}, {}


def _op(item):
    return item.name.partition("[")[2].split("-")[0].rstrip("]")


def pytest_runtest_setup(item):
    if _op(item) in CAUGHT:
        pytest.skip("an earlier test has failed")


def pytest_runtest_makereport(item, call):
    if call.excinfo is not None:
        text = " ".join(f"{item.originalname}: {call.excinfo.value}".split())
        CAUGHT.setdefault(_op(item), text[:300])
    elif call.when == "call":
        PASSED[_op(item)] = PASSED.get(_op(item), 0) + 1


def pytest_unconfigure():
    found = {"caught": CAUGHT, "passed": PASSED}
    Path(__file__).with_name("found.json").write_text(json.dumps(found))
"""
_SUITE = """\


class Test{name}(custom_pypto_testing.Conformance):
    plugin = "acme_{name}"
"""


@dataclass(frozen=True)
class Fault:
    """One fault: in `file`, or in the C++ source, `right` becomes `wrong`."""

    kind: str
    op: str
    right: str
    wrong: str
    file: str = "csrc"


class FaultyPlugin:
    """The plugin in the folder `source`, with its ops once for each fault of its faults.toml."""

    def __init__(self, source: Path) -> None:
        self.source = source
        faults = tomllib.loads((source / "faults.toml").read_text(encoding="utf-8"))
        contract = tomllib.loads((source / "ops.toml").read_text(encoding="utf-8"))
        self.ops = [name for name in contract if name not in ("groups", "templates")]
        self.faults = tuple(
            Fault(kind, **{"op": self.ops[0], **fault}) for kind, fault in faults.items()
        )

    def write(self, folder: Path) -> Path:
        """Write the project into `folder`."""
        name = f"{self.source.name}_faults"
        write_project(self.source, folder, name)
        self._write_contract(folder / "ops.toml")
        (source,) = (folder / "csrc").glob("*.cpp")
        self._write_kernels(source)
        self._write_hooks(folder / "src" / f"acme_{name}" / "__init__.py")
        return folder

    def name(self, fault: Fault) -> str:
        """The faulty op's name."""
        return self._renamed(fault.op, self.faults.index(fault))

    def _renamed(self, text: str, number: int) -> str:
        return re.sub(rf"\b({'|'.join(self.ops)})\b", rf"\g<1>_{number}", text)

    def _copies(self, file: Path, kind: str) -> list[str]:
        text = file.read_text(encoding="utf-8")
        return [
            self._renamed(_spoil(text, fault) if fault.file == kind else text, number)
            for number, fault in enumerate(self.faults)
        ]

    def _write_contract(self, file: Path) -> None:
        # Templates and groups serve all.
        shared = re.split(r"(?m)^(?=\[)", file.read_text(encoding="utf-8"))
        texts = [part for part in shared if part.startswith(("[groups", "[templates"))]
        for copy in self._copies(file, "ops.toml"):
            parts = re.split(r"(?m)^(?=\[)", copy)
            texts += [part for part in parts if not part.startswith(("#", "[groups", "[templates"))]
        file.write_text("".join(texts), encoding="utf-8")

    def _write_kernels(self, file: Path) -> None:
        includes, _, _ = file.read_text(encoding="utf-8").partition("\nnamespace {")
        text, calls = f"{includes}\n", ""
        for number, copy in enumerate(self._copies(file, "csrc")):
            body, _, registration = copy.removeprefix(includes).partition("CUSTOM_PYPTO_PLUGIN")
            function = registration.replace("(plugin)", "(custom_pypto::Registrar& plugin)", 1)
            text += f"namespace fault_{number} {{{body}void add{function}}}\n"
            calls += f"fault_{number}::add(plugin); "
        file.write_text(f"{text}CUSTOM_PYPTO_PLUGIN(plugin) {{ {calls}}}\n", encoding="utf-8")

    def _write_hooks(self, file: Path) -> None:
        copies = self._copies(file, "src")
        hooks = sorted(set(re.findall(r"(?m)^def (custom_pypto_\w+)", copies[0])))
        for number, copy in enumerate(copies):
            (file.parent / f"copy_{number}.py").write_text(copy, encoding="utf-8")
        numbers = range(len(copies))
        text = "from custom_pypto_plugin import hookimpl\n\n" + "".join(
            f"from . import copy_{number}\n" for number in numbers
        )
        for hook in hooks:
            merged = ", ".join(f"**copy_{number}.{hook}()" for number in numbers)
            text += f"\n\n@hookimpl\ndef {hook}():\n    return {{{merged}}}\n"
        file.write_text(text, encoding="utf-8")


def write_suites(folder: Path, names: Iterable[str]) -> None:
    """Write the suites of plugins, and a conftest.py that writes what they find."""
    (folder / "conftest.py").write_text(_CONFTEST, encoding="utf-8")
    suites = "".join(_SUITE.format(name=name) for name in names)
    (folder / "test_suites.py").write_text(f"import custom_pypto_testing\n{suites}")


def _spoil(text: str, fault: Fault) -> str:
    assert text.count(fault.right) == 1, f"{fault.kind}: {text.count(fault.right)} places"
    return text.replace(fault.right, fault.wrong)
