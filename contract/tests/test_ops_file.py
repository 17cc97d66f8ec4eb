"""ops.toml: what it says, and errors that name file, op and key."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from custom_pypto_contract import notation, ops_file
from custom_pypto_contract.contract import OpContract
from custom_pypto_contract.errors import ContractError

REFUSED = Path(__file__).with_name("contracts") / "refused.txt"
# A contract that is right; each case adds to it, or replaces what it says.
BASE = """
[templates.row]
parameters = "N"
shape = "*shape N"

[groups.both]
check_order = "x"
tensors.x = { template = "row(D)" }

[op]
schema = "op(Tensor x, Tensor? y, int k=1, str mode='a', bool flag=False, int[] sizes=[]) -> Tensor"
include = "both"
"""
TENSOR = "\ntensors.y = {}"


def read(folder: Path, text: str) -> tuple[OpContract, ...]:
    path = folder / "ops.toml"
    path.write_text(text, encoding="utf-8")
    return ops_file.read(path).ops


LISTS = """
[op]
schema = "op(Tensor[] xs, Tensor[]? ys, Tensor z) -> {returns}"
tensors.xs = { length = "E", shape = "M[i] K", dtype = "float32" }
{line}
tensors.z = {}
"""
TEXTS = {
    "an op": BASE + "{line}" + TENSOR,
    "lists that return lists": LISTS.replace("{returns}", "Tensor[]"),
    "lists that return a tensor": LISTS.replace("{returns}", "Tensor"),
    "a file": "{line}",
    "constants": """
[constants]
{line}
[op]
schema = "op(int K, int k) -> ()"
rules = [{ argument = "k", check = "k > 1", message = "is {M}" }]
""",
}


def refused() -> Iterator[tuple[str, str]]:
    """Yield each text in contracts/refused.txt, and its error."""
    name = ""
    for paragraph in REFUSED.read_text(encoding="utf-8").split("\n\n")[1:]:
        if paragraph.startswith("== "):
            name = paragraph.removeprefix("== ").strip()
            continue
        given, error = paragraph.rstrip("\n").split("\n! ")
        text = TEXTS[name]
        # What a paragraph says itself, the text does not say too.
        for line in ('include = "both"\n', "\ntensors.y = {}", "\ntensors.z = {}"):
            if f"\n{line.strip().split(' =')[0]}" in f"\n{given}":
                text = text.replace(line, "")
        yield text.replace("{line}", given), error


@pytest.mark.parametrize(("text", "error"), [*refused()])
def test_what_a_file_cannot_say_is_refused(tmp_path: Path, text: str, error: str) -> None:
    with pytest.raises(ContractError) as caught:
        read(tmp_path, text)
    found = str(caught.value)
    assert found == error or (error.endswith("...") and found.startswith(error[:-3]))


SCHEMA = "schema = \"op(Tensor x, Tensor? y, int k=1, str mode='a') -> Tensor\""
TABLES = {
    "{}": notation.OP,
    "tensors.y.{}": (*notation.TENSOR, notation.TEMPLATE_OF_TENSOR),
    "outputs.z.{}": notation.OUTPUT,
    "npu.{}": notation.NPU,
    "npu.limits.k.{}": notation.LIMITS_OF_KERNEL,
    "rules = [{{ {} }}]": notation.RULE[:1],
    "rules = [{{ argument = 'k', {} }}]": notation.RULE[1:2],
    "rules = [{{ argument = 'k', check = 'k > 1', {} }}]": notation.RULE[2:],
}
# No key takes a date, a list of a table without keys, or a table of a date.
VALUES = ("1979-05-27", "[{}]", "{ a = 1979-05-27 }")


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize(
    ("line", "key"), [(line, key.name) for line, keys in TABLES.items() for key in keys]
)
def test_value_of_a_wrong_type_is_an_error_of_its_key(
    tmp_path: Path, line: str, key: str, value: str
) -> None:
    schema = "" if key == "schema" else SCHEMA
    with pytest.raises(ContractError) as caught:
        read(tmp_path, f"[op]\n{schema}\n{line.format(f'{key} = {value}')}")
    assert str(caught.value).startswith("ops.toml: [op]: ")
    assert key in str(caught.value)


def test_a_rule_may_say_that_a_list_is_not_empty(tmp_path: Path) -> None:
    line = (
        'rules = [{ argument = "xs", check = "E >= 1", message = "must not be empty" }]\n'
        'outputs.r = { shape = "K", dtype = "=xs" }'
    )
    [op] = read(tmp_path, TEXTS["lists that return a tensor"].replace("{line}", line))
    assert op.outputs is not None


def test_missing_file_says_what_to_write(tmp_path: Path) -> None:
    with pytest.raises(
        ContractError, match=r'ops.toml is missing; [^\n]*\n\[my_op\]\nschema = "my_op\('
    ):
        ops_file.read(tmp_path / "ops.toml")
