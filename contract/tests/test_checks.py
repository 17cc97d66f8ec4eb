"""The checks of a contract: which they are, in which order, and with which messages."""

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

import golden
from custom_pypto_contract import checks, ops_file
from custom_pypto_contract.checks import Bind, Check, Each, Step
from custom_pypto_contract.contract import OpContract

CONTRACTS = Path(__file__).with_name("contracts")


def written(steps: Iterable[Step], pad: str = "") -> Iterator[str]:
    for step in steps:
        if isinstance(step, Check):
            kind = "relate" if step.is_of_sizes else "check"
            message = "".join(
                each if isinstance(each, str) else f"{{{ast.unparse(each)}}}"
                for each in step.message
            )
            yield f"{pad}{kind} {step.argument}: {ast.unparse(step.condition)} -- {message}"
        elif isinstance(step, Bind):
            once = " unless bound" if step.may_be_bound else ""
            yield f"{pad}{step.dim} = {ast.unparse(step.value)}{once}"
        elif isinstance(step, Each):
            yield f"{pad}for i in {ast.unparse(step.count)}"
            yield from written(step.steps, f"{pad}  ")
        else:
            for condition, inner in step.cases:
                yield f"{pad}if {ast.unparse(condition)}"
                yield from written(inner, f"{pad}  ")


def all_checks(op: OpContract) -> list[str]:
    """Return everything that is checked of an op, limits included."""
    lines = list(written(checks.steps(op)))
    for name, rules in op.npu.limits.items():
        lines += [f"limits of {name}", *written(checks.rule_steps(op, rules), "  ")]
    lines += [f"supports {name}: {ast.unparse(each)}" for name, each in op.npu.supports.items()]
    return lines


def test_checks_of_contracts() -> None:
    """Read the lines of a change of checks.txt: callers see the messages."""
    shown = "".join(
        "\n".join([op.schema.text, *(f"  {line}" for line in all_checks(op)), ""])
        for name in ("checks", "everything", "edges", "reserved_names")
        for op in ops_file.read(CONTRACTS / f"{name}.toml").ops
    )
    golden.compare(shown, CONTRACTS / "checks.txt")
