"""No file imports itself through others: not in a function, nor, except in testing, for types.

What a process that a file starts imports counts as well: of distributions, none may need itself.
"""

from __future__ import annotations

import ast
import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from custom_pypto_plugin import hookspecs

ROOT = Path(__file__).resolve().parents[2]
SOURCES = [*ROOT.glob("*/src"), *ROOT.glob("plugins/*/src"), *ROOT.glob("integrations/*/src")]
FILES = {
    ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__"): path
    for source in SOURCES
    for path in source.rglob("*.py")
}

CODE = re.compile(r"^(?:from|import) ([\w.]+)(?: import (\w+))?", re.MULTILINE)


def imports_of(module: str, *, with_processes: bool = False) -> set[str]:
    """Return the modules of FILES that a module imports, and the packages around those."""
    path = FILES[module]
    # The number of names to drop for the package that a relative import begins at.
    own = module.split(".") + (["__init__"] if path.name == "__init__.py" else [])
    names: set[str] = set()
    nodes = [ast.parse(path.read_text(encoding="utf-8"))]
    while nodes:
        node = nodes.pop()
        # A case and its op, in testing, name each other's type.
        is_type = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        if is_type and own[0] == "custom_pypto_testing":
            continue
        nodes += ast.iter_child_nodes(node)
        if isinstance(node, ast.Import):
            names |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom):
            start = own[: -node.level] if node.level else []
            base = ".".join([*start, *filter(None, [node.module])])
            names |= {f"{base}.{each.name}" for each in node.names}
        elif with_processes and isinstance(node, ast.Constant) and isinstance(node.value, str):
            # Code for another process, or a module's name, as for ``-m``.
            names |= {node.value} & FILES.keys() - vars(hookspecs).keys()
            names |= {f"{name}.{part}" for name, part in CODE.findall(node.value)}
    parts = (name.split(".") for name in names)
    loaded = {".".join(each[:end]) for each in parts for end in range(1, len(each) + 1)}
    # A package around a module is imported before it.
    return {name for name in loaded & FILES.keys() if not f"{module}.".startswith(f"{name}.")}


# An op as a function imports core at its first call, long after both packages were imported.
# torch.compile follows an import statement, but not importlib.
AT_THE_FIRST_CALL = "custom_pypto_plugin.op_functions"


def test_imports_go_one_way() -> None:
    assert imports_of(AT_THE_FIRST_CALL) == {
        *("custom_pypto", "custom_pypto.core", "custom_pypto.core.derivative")
    }
    assert "custom_pypto.core.loader" in imports_of("custom_pypto.core")
    assert "custom_pypto.core.contracts.evaluation" in imports_of("custom_pypto.core.contracts")
    try:
        others = {module: imports_of(module) for module in FILES if module != AT_THE_FIRST_CALL}
        TopologicalSorter(others).prepare()
    except CycleError as error:
        raise AssertionError(" -> ".join(error.args[1])) from None


def test_no_distribution_needs_itself() -> None:
    needs: dict[str, set[str]] = {}
    owner = {
        module: next(source.parent.name for source in SOURCES if source in path.parents)
        for module, path in FILES.items()
    }
    for module in FILES:
        found = imports_of(module, with_processes=True)
        others = {owner[each] for each in found} - {owner[module]}
        needs.setdefault(owner[module], set()).update(others)
    TopologicalSorter(needs).prepare()
    assert {name: " ".join(sorted(found)) for name, found in needs.items()} == {
        "contract": "",
        "core": "contract",
        # `new` writes a test that imports testing, and kernels that include blocks.
        "builder": "blocks contract core testing",
        **dict.fromkeys(["testing", "kernels"], "contract core"),
        **dict.fromkeys(["blocks", "add_custom", "advance_step", "linear"], "core"),
        **dict.fromkeys(["compressor", "quant_matmul"], "blocks core"),
        "serving": "compressor core",
        "weight_quant_matmul": "core",
        "mhc": "blocks core testing",
        "sparse_flash_mla": "blocks core testing",
        "simulator": "builder contract",
        # Two plugins bring comparisons for testing.
        "lightning_indexer": "blocks core testing",
        **dict.fromkeys(["grouped_matmul", "lightning_indexer_prolog"], "blocks core"),
        "sparse_attention": "blocks core lightning_indexer testing",
        "transformers": "core grouped_matmul linear quant_matmul sparse_attention"
        " weight_quant_matmul",
        "vllm": "core weight_quant_matmul",
        "mindspore": "contract core",
    }
