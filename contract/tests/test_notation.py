"""Constants, scalars, choices of groups and templates, and references to later names."""

import json
from pathlib import Path

import golden
import pytest
from custom_pypto_contract import contract_data, notation, ops_file
from custom_pypto_contract.__main__ import main
from custom_pypto_contract.attributes import ATTRIBUTES, COST_ATTRIBUTES
from custom_pypto_contract.dtypes import DTYPES
from custom_pypto_contract.errors import ContractError
from custom_pypto_contract.manifest import EMPTY_CONTRACT
from custom_pypto_contract.ops_file import OpsFile

CONTRACTS = Path(__file__).with_name("contracts")
PAGE = (Path(__file__).parents[2] / "docs" / "contract.md").read_text(encoding="utf-8")


def read(text: str) -> OpsFile:
    return ops_file.read_document(ops_file.tomllib.loads(text))


def test_data_of_contracts() -> None:
    """Read the lines of a change of data.json: manifests that are built have this form."""
    file = ops_file.read(CONTRACTS / "data.toml")
    data = [op.data for op in file.ops]
    golden.compare(json.dumps(data, indent=1) + "\n", CONTRACTS / "data.json")
    assert [contract_data.read_contract(each).data for each in data] == data
    assert file.constants["HEADS"] == [1, 2, 4]
    assert {op.outputs for op in file.ops if not op.schema.returns} == {()}


def test_every_key_of_an_op_is_in_its_data_and_in_the_manifest() -> None:
    [data] = [op.data for op in read(PLAIN).ops]
    assert data.keys() == EMPTY_CONTRACT.keys() | {"schema"}
    # `rules` and `tensors` hold what these say.
    assert {key.name for key in notation.OP} - {"scalars", "check_order", "include"} <= data.keys()


OP = "[op]\nschema = 'op(Tensor x, int k{}) -> ()'\n"
PLAIN = OP.format("")


@pytest.mark.parametrize(
    "text",
    [
        PLAIN + "rules = " + "[" * 5000 + "]" * 5000,
        PLAIN + "tensors.x.shape." + ".".join(["k.1"] * 1500) + " = 'N'",
        PLAIN + "tensors.x.shape." + ".".join(["k.1"] * 20) + " = 'N'",
        # tomllib alone needs half a minute for this one.
        ".".join("a" * 50_000) + " = 1",
        PLAIN + f"rules = [{{ argument = 'k', check = '{'-' * 5000}k > 0' }}]",
        PLAIN + f"rules = [{{ argument = 'k', check = '{'not ' * 150}k > 0' }}]",
        PLAIN + f"definition = '{'-' * 5000}k'",
        PLAIN + f"npu.launch = 'aclnnOp({'-' * 5000}1)'",
    ],
)
def test_text_that_is_nested_too_deeply_is_refused(text: str, tmp_path: Path) -> None:
    file = tmp_path / "ops.toml"
    file.write_text(text)
    with pytest.raises(ContractError, match=r"^ops.toml: .*nested too deeply"):
        ops_file.read(file)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (OP.format(f"={'-' * 5000}1"), "the default of `k` is"),
        (PLAIN + f"tensors.x.shape = 'N N/{'9' * 30}'", "does not fit into 64 bits"),
        (PLAIN + f"tensors.x.shape = 'N N/{'9' * 5000}'", "is no expression"),
        (PLAIN + f"tensors.x = {{ shape = '*N', ndim = [{'9' * 30}] }}", "x.ndim must be"),
        (PLAIN + f"tensors.x.shape.k.{'9' * 30} = 'N'", "k cannot be"),
    ],
)
def test_number_or_choice_that_cannot_be_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ContractError, match=reason):
        read(text)


TABLES = {
    "an op": notation.OP,
    "a tensor": (*notation.TENSOR, notation.TEMPLATE_OF_TENSOR),
    "a rule": notation.RULE,
    "an output": notation.OUTPUT,
    "NPU kernels": notation.NPU,
    "limits of a kernel": notation.LIMITS_OF_KERNEL,
    "a template": [key for key in notation.TEMPLATE if key not in notation.TENSOR],
}


@pytest.mark.parametrize("of", TABLES)
def test_page_has_the_table_of_the_keys(of: str) -> None:
    assert "\n".join(("| key | says |", "|---|---|", *notation.rows(TABLES[of]))) in PAGE


def test_page_has_the_attributes_and_dtypes() -> None:
    for attributes in (ATTRIBUTES, COST_ATTRIBUTES):
        rows = [f"| `x.{name}` | {each.help} |" for name, each in attributes.items()]
        assert "\n".join(rows) in PAGE
    assert ", ".join(f"`{name}`" for name in DTYPES) in PAGE


def test_the_command_describes_a_file_or_says_what_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "ops.toml"
    path.write_text("[op]\nschema = 'op(int k) -> ()'\nscalars.k = '1 <= k <= 3'")
    assert main([str(path)]) == (
        "error: ops.toml: [op]: scalars.k: '1 <= k <= 3' must go on after the name, as '>= 1',"
        " '> 0 and < inf' or 'in (0, 3)' do; write a rule for anything else"
    )
    path.write_text("[op]\nschema = 'op(int k) -> ()'\nscalars.k = '>= 1'")
    assert main([str(path)]) is None
    assert capsys.readouterr().out == "op(int k) -> ()\n\nArguments\n  k  int; k >= 1\n"
