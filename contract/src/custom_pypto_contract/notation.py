"""The keys of ops.toml: the one table that validators and the documentation derive from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from . import tables
from .errors import ContractError
from .tables import TableError, Validator

STRIDES = ("any", "last_dim_contiguous", "contiguous")


@dataclass(frozen=True)
class Key:
    """One key of a table."""

    name: str
    validate: Validator
    help: str
    """Its row in the documentation."""
    default: Any = None
    """Its normalised value where a tensor leaves it out."""
    is_prose: bool = False
    """Whether its texts are for people, so that no constant is replaced in them."""
    is_tree: bool = False
    """Whether an argument can choose its value."""


def _plain_text(path: str, value: Any) -> None:
    tables.text(path, value)
    if "{" in value or "}" in value:
        raise TableError(path, "is shown as it is, so it has no braces", value)


def _trees_of(validate: Validator) -> Validator:
    """Return a validator of tables that choose among trees: ``{selector = {value = ..}}``."""

    def validate_choice(path: str, value: Any) -> None:
        tables.table(path, value)
        for selector, each in value.items():
            if not isinstance(each, dict):
                raise TableError(path, f"must be {selector} = {{ value = .. }}", each)
            tables.table_of(_tree_of(validate))(f"{path}.{selector}", each)

    return validate_choice


def _tree_of(validate: Validator) -> Validator:
    trees = _trees_of(validate)
    return lambda path, value: (trees if isinstance(value, dict) else validate)(path, value)


def _shape(path: str, value: Any) -> None:
    if isinstance(value, list) and value:
        tables.list_of(tables.text)(path, value)
    else:
        _tree_of(tables.text)(path, value)


def _ndim(path: str, value: Any) -> None:
    numbers = value if isinstance(value, list) else []
    if not numbers or not all(type(each) is int and 0 <= each < 2**63 for each in numbers):
        raise TableError(path, "must be a list of numbers of dims, such as [2, 3]", value)


def _limits(path: str, value: Any) -> None:
    validate = _RULES
    if not isinstance(value, list):
        validate = tables.table_of(_record(LIMITS_OF_KERNEL, ["rules"]), of_identifiers=True)
    validate(path, value)


def _record(keys: Iterable[Key], required: Iterable[str] = ()) -> Validator:
    return tables.record({key.name: key.validate for key in keys}, required)


_STRIDES = tables.text_matching("|".join(STRIDES), f"one of {', '.join(STRIDES)}")
_TEXTS = tables.one_or_list_of(tables.text)
_DESCRIPTIONS = tables.table_of(_plain_text)
_VALUES = tables.list_of(
    tables.instance_of((bool, int, str), "true, false, a number or a text"),
    "a list of values, such as ['BSND']",
    is_filled=True,
)
_CONSTANT = tables.instance_of((bool, int, float, str), "true, false, a number or a text")

RULE = (
    Key("argument", tables.text, "the argument that the error names"),
    Key("check", tables.text, "the condition that must hold"),
    Key("when", tables.text, "where it must hold; without it always"),
    Key(
        "message",
        tables.text,
        "how the error goes on after the argument's name, with expressions in braces; a comparison"
        " of a scalar argument with a number (`k >= 1`), `k in (..)` and `x.dtype in (..)` have a"
        " message of their own",
    ),
)
_RULES = tables.list_of(_record(RULE, ["argument", "check"]))

LIMITS_OF_KERNEL = (
    Key("reason", _plain_text, "why; each error ends with it", is_prose=True),
    Key("rules", _RULES, "the limits"),
)

TENSOR = (
    Key("shape", _shape, "its dims, below; without it any", is_tree=True),
    Key("length", tables.text, "of a `Tensor[]`: the number of tensors, a dim; without it any"),
    Key(
        "ndim",
        _ndim,
        "`[2, 3]`: the allowed numbers of dims of a shape that begins with `*name`",
        default=[],
    ),
    Key(
        "dtype",
        tables.text,
        '`"float16 float32"`: one of these; `"=x"`: that of `x`; `"=x float32"`: either; without it'
        " any",
        default="",
    ),
    Key(
        "strides",
        _STRIDES,
        '`"contiguous"`; `"last_dim_contiguous"`: elements of the last dimension are adjacent',
        default="any",
    ),
    Key(
        "required_when",
        _trees_of(_plain_text),
        "when a `Tensor?` must be given, and why:"
        ' `required_when.layout = { TND = "the prefix sums" }`',
        is_prose=True,
        is_tree=True,
    ),
    Key(
        "allowed_when",
        tables.table_of(_VALUES),
        'when a `Tensor?` may be given: `allowed_when.layout = ["PA_BSND"]`',
        is_tree=True,
    ),
    Key(
        "description",
        _plain_text,
        'what its shape is, for messages: `"the shape of query without its last dimension"`',
        default="",
        is_prose=True,
    ),
    Key(
        "descriptions",
        _DESCRIPTIONS,
        "what each of its dims is, where that differs from the op's `descriptions`",
        default={},
        is_prose=True,
    ),
    Key(
        "hint",
        _plain_text,
        "what to do about wrong strides or a wrong shape",
        default="",
        is_prose=True,
    ),
    Key(
        "values",
        _tree_of(tables.text),
        'the integers in it, for random calls: `"0 .. M*block_size"`, `"distinct 0 .. n - 1"`,'
        ' `"prefix_sums T"`, `"prefix_sums 0 .. T"`',
        is_tree=True,
    ),
)
TEMPLATE_OF_TENSOR = Key(
    "template",
    tables.text,
    'a `[templates.name]` with all that, whose shapes have parameters: `"weight(H, L+R)"`',
)
TEMPLATE = (
    Key("parameters", tables.text, "names that `shape` and `values` replace by names of a tensor"),
    Key("rules", _RULES, "rules in which `self` is the tensor"),
    *TENSOR,
)

OUTPUT = (
    Key("shape", _tree_of(tables.text), "its dims", is_tree=True),
    Key("dtype", tables.text, 'one dtype, or `"=x"`', default=""),
    Key("like", tables.text, "an argument whose shape, dtype and strides it has"),
    Key("length", tables.text, "of a `Tensor[]`: the number of tensors"),
)

NPU = (
    Key("limits", _limits, "rules of NPU kernels"),
    Key(
        "supports",
        tables.table_of(tables.text, of_identifiers=True),
        "the calls that a kernel is used for, where there is another way too",
    ),
    Key("launch", _TEXTS, "calls of aclnn kernels"),
    Key("graph", _TEXTS, "nodes of GE operators"),
)

OP = (
    Key(
        "schema",
        tables.text,
        "as PyTorch writes it, without namespace; `Tensor(a!) x` is written in place, and an op"
        " without result returns `()`",
    ),
    Key("summary", tables.text, "one sentence for people", is_prose=True),
    Key(
        "definition",
        tables.text,
        "the op in PyTorch, an expression of its arguments and `torch`; the reference of the"
        " conformance suite, unless a hook gives one",
    ),
    Key(
        "random",
        tables.instance_of((bool,), "true or false"),
        "`true`: the op draws random numbers, from torch's default generator of its device",
    ),
    Key(
        "tensors",
        tables.table_of(_record((TEMPLATE_OF_TENSOR, *TENSOR))),
        "what each tensor must be; all of them, or none. A `Tensor[]` may be left out",
    ),
    Key(
        "scalars",
        tables.table_of(tables.text),
        "`sparse_count = \">= 1\"`, `layout = \"in ('BSND', 'TND')\"`",
    ),
    Key("rules", _RULES, "what else must hold"),
    Key(
        "outputs",
        tables.table_of(_record(OUTPUT), of_identifiers=True),
        "each return, in order, with its name in the schema: `{ shape, dtype }`, which is"
        ' contiguous; or `{ like = "self" }` for shape, dtype and strides of an argument',
    ),
    Key(
        "flops",
        _tree_of(tables.text),
        "the floating-point operations of a call, below",
        is_tree=True,
    ),
    Key(
        "bytes",
        _tree_of(tables.text),
        "the bytes that a call must read and write, below",
        is_tree=True,
    ),
    Key(
        "descriptions",
        _DESCRIPTIONS,
        'what a dim is, for messages: `B = "the number of sequences"`',
        is_prose=True,
    ),
    Key("check_order", _TEXTS, "in which the tensors are checked; without it as in the schema"),
    Key("include", _TEXTS, "groups that describe some of its arguments"),
    Key("npu", _record(NPU), "`limits`, `supports`, `launch`, `graph`, below"),
)

_OF_GROUPS = ("include", "check_order", "scalars", "tensors", "rules", "descriptions")
GROUP = (
    *(key for key in OP if key.name in _OF_GROUPS),
    Key("npu", _record(key for key in NPU if key.name == "limits"), "`limits` alone"),
)

DOCUMENT = {
    "constants": tables.table_of(tables.one_or_list_of(_CONSTANT), of_identifiers=True),
    "templates": tables.table_of(_record(TEMPLATE, ["shape"]), of_identifiers=True),
    "groups": tables.table_of(_record(GROUP), of_identifiers=True),
}
"""The tables of ops.toml that are not an op."""


def validate(keys: Iterable[Key], body: Any) -> None:
    """Check the keys of a table and the types of their values.

    Raises:
        ContractError: one is wrong; the text names it.
    """
    try:
        _record(keys)("", body)
    except TableError as error:
        raise ContractError(str(error)) from None


def rows(keys: Iterable[Key]) -> list[str]:
    """Return the rows of the documentation's table."""
    return [f"| `{key.name}` | {key.help} |" for key in keys]
