"""Wrong kernels of the plugins in third_party: their sources with one fault each.

All faults of all plugins are built as one plugin, from one source, beside the right ops. A wrong op
has the fault's number behind its name. One run of the conformance suite tests all of them.
"""

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from repository import PROJECT

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


# Ends the suite of an op at its first failure. The file has which test that was, and how many tests
# have passed. No kernel ends the process: each reads and writes allocated memory only.
_CONFTEST = """\
import json
import re
from pathlib import Path

from custom_pypto import core
from custom_pypto_testing import ops_under_test

CAUGHT, PASSED, DRAWN = {}, {}, {}
# Right ops: graphs of one sample and of written slices. Wrong ops: no graphs, no fuzzed calls.
LONG = re.compile("compiles|exports|opcheck|symbolic|fuzzed|inductor")
draw = ops_under_test.drawn_samples


def _draw(contract, device):
    # All wrong ops that are made from one right op have the same samples.
    name, is_wrong = re.fullmatch(r"(.*?)(_\\d)?", contract.name).groups()
    if not is_wrong:
        return draw(contract, device)
    if name not in DRAWN:
        DRAWN[name] = tuple(draw(core.contract(f"{name}_2"), device))
    return DRAWN[name]


ops_under_test.drawn_samples = _draw


def _op(item):
    return item.name.partition("[")[2].split("-")[0].rstrip("]")


def _is_chosen(item):
    name, op = item.name, _op(item)
    if re.search(r"_\\d$", op):
        return op in WRONG and not re.search(f"gradients|{LONG.pattern}", name)
    return any(map(name.__contains__, ("drawn-0", "slices", "fuzzed"))) or not LONG.search(name)


def pytest_collection_modifyitems(items):
    items[:] = filter(_is_chosen, items)


def pytest_runtest_protocol(item):
    return True if _op(item) in CAUGHT else None


def pytest_runtest_makereport(item, call):
    if call.excinfo is not None:
        text = " ".join(f"{item.originalname}: {call.excinfo.value}".split())
        CAUGHT.setdefault(_op(item), text[:300])
    elif call.when == "call":
        PASSED[_op(item)] = PASSED.get(_op(item), 0) + 1


def pytest_unconfigure():
    found = {"caught": CAUGHT, "passed": PASSED}
    Path(__file__).with_name("found.json").write_text(json.dumps(found))


WRONG = """
_SHARED = ("[groups", "[templates")
_SUITE = """\
import custom_pypto_testing


class TestAll(custom_pypto_testing.Conformance):
    plugin = "acme_faults"
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
    """A plugin of third_party: its right ops, and one wrong op for each fault of faults.toml."""

    def __init__(self, source: Path) -> None:
        self.name = source.name
        self._source = source
        faults = tomllib.loads((source / "faults.toml").read_text(encoding="utf-8"))
        contract = tomllib.loads((source / "ops.toml").read_text(encoding="utf-8"))
        self.ops = [name for name in contract if name not in ("groups", "templates")]
        self.faults = tuple(
            Fault(kind, **{"op": self.ops[0], **fault}) for kind, fault in faults.items()
        )

    def name_of(self, fault: Fault) -> str:
        """The faulty op's name."""
        return self._renamed(fault.op, self.faults.index(fault))

    def contract(self) -> str:
        """The tables of all ops, behind the templates and groups, which serve all."""
        right, *wrong = (
            re.split(r"(?m)^(?=\[)", copy)[1:] for copy in self._copies("ops.toml", "ops.toml")
        )
        ops = [part for parts in wrong for part in parts if not part.startswith(_SHARED)]
        return "".join([*right, *ops])

    def kernels(self) -> tuple[str, list[str]]:
        """The includes, and for each copy a namespace with the function `add`."""
        copies = self._copies("csrc/*.cpp", "csrc")
        includes, _, _ = copies[0].partition("\nnamespace {")
        namespaces = []
        for number, copy in enumerate(copies):
            body, _, registration = copy.removeprefix(includes).partition("CUSTOM_PYPTO_PLUGIN")
            function = registration.replace("(plugin)", "(custom_pypto::Registrar& plugin)", 1)
            namespaces.append(f"namespace {self.name}_{number} {{{body}void add{function}}}\n")
        return includes, namespaces

    def hooks(self) -> list[str]:
        """The Python of each copy, if the plugin has hooks."""
        return self._copies("src/*/__init__.py", "src") if (self._source / "src").exists() else []

    def _renamed(self, text: str, number: int) -> str:
        return re.sub(rf"\b({'|'.join(self.ops)})\b", rf"\g<1>_{number}", text)

    def _copies(self, file: str, kind: str) -> list[str]:
        """The right text of a file, and its text for each fault."""
        [path] = self._source.glob(file)
        text = path.read_text(encoding="utf-8")
        wrong = [_spoil(text, fault) if fault.file == kind else text for fault in self.faults]
        return [text, *(self._renamed(each, number) for number, each in enumerate(wrong))]


def write(plugins: Sequence[FaultyPlugin], folder: Path) -> Path:
    """Write all ops of all plugins as one project; return its folder."""
    package = folder / "src" / "acme_faults"
    package.mkdir(parents=True)
    (folder / "pyproject.toml").write_text(PROJECT.format(name="faults"), encoding="utf-8")
    contracts = "".join(plugin.contract() for plugin in plugins)
    (folder / "ops.toml").write_text(contracts, encoding="utf-8")
    includes, namespaces = zip(*(plugin.kernels() for plugin in plugins), strict=True)
    calls = "".join(
        f"{plugin.name}_{number}::add(plugin); "
        for plugin in plugins
        for number in range(len(plugin.faults) + 1)
    )
    texts = [*includes, *chain.from_iterable(namespaces)]
    texts.append(f"CUSTOM_PYPTO_PLUGIN(plugin) {{ {calls}}}\n")
    (folder / "csrc").mkdir()
    (folder / "csrc" / "faults.cpp").write_text("\n".join(texts), encoding="utf-8")
    hooks = list(chain.from_iterable(plugin.hooks() for plugin in plugins))
    _write_hooks(hooks, package)
    return folder


def _write_hooks(copies: Sequence[str], package: Path) -> None:
    for number, copy in enumerate(copies):
        (package / f"copy_{number}.py").write_text(copy, encoding="utf-8")
    names = [f"copy_{number}" for number in range(len(copies))]
    text = f"from custom_pypto_plugin import hookimpl\n\nfrom . import {', '.join(names)}\n"
    for hook in sorted(set(re.findall(r"(?m)^def (custom_pypto_\w+)", "\n".join(copies)))):
        merged = ", ".join(f"**{name}.{hook}()" for name in names)
        text += f"\n\n@hookimpl\ndef {hook}():\n    return {{{merged}}}\n"
    (package / "__init__.py").write_text(text, encoding="utf-8")


def write_suite(plugins: Sequence[FaultyPlugin], folder: Path) -> None:
    """Write the suite of the plugin, and a conftest.py that writes what it finds."""
    wrong = [plugin.name_of(fault) for plugin in plugins for fault in plugin.faults]
    (folder / "conftest.py").write_text(f"{_CONFTEST}{wrong}\n", encoding="utf-8")
    (folder / "test_suite.py").write_text(_SUITE, encoding="utf-8")


def _spoil(text: str, fault: Fault) -> str:
    assert text.count(fault.right) == 1, f"{fault.kind}: {text.count(fault.right)} places"
    return text.replace(fault.right, fault.wrong)
