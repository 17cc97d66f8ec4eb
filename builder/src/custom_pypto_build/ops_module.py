"""The module ``ops`` of a plugin's package: the Python that is made of ops.toml."""

from __future__ import annotations

import json
import keyword
from collections.abc import Iterator
from pathlib import Path

from custom_pypto_contract.contract import OpContract
from custom_pypto_contract.description import describe
from custom_pypto_contract.ops_file import OpsFile
from custom_pypto_contract.schema import Argument, Schema

from .errors import BuildError

FILE_NAME = "ops.py"
STAR_IMPORT = "from .ops import *\n"
"""The import by which a plugin's package exports the functions."""

_HEAD = """\
{mark}the ops of the plugin {plugin!r} as functions, and its constants.

The first call of one loads the installed plugins.
\"\"\"

# The signatures are all there is to the functions.
# mypy: disable-error-code="empty-body"

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from custom_pypto_plugin import op_function

if TYPE_CHECKING:
    import torch
    from torch import Tensor

__all__ = {names!r}
{constants}"""
_TYPES = {"ScalarType": "torch.dtype", "Device": "torch.device | str"}
_MARK = '"""Written by custom_pypto_build: '
# Names with another meaning in the module.
_TAKEN = frozenset(
    """
    Final Sequence TYPE_CHECKING Tensor annotations bool float int list op_function str torch tuple
    """.split()  # noqa: SIM905
)


def module_text(plugin: str, file: OpsFile) -> str:
    """Return the module of a plugin with these ops and constants.

    Raises:
        BuildError: two ops would have one name.
    """
    functions: dict[str, OpContract] = {}
    owners = {name: f"the constant {name!r}" for name in file.constants}
    for op in sorted(file.ops, key=lambda op: op.name):
        name, owner = function_name(op.name), f"the op {op.name!r}"
        if name in owners:
            raise BuildError(
                f"ops.toml: {owners[name]} and {owner} would both be {name!r}; rename one"
            )
        owners[name], functions[name] = owner, op
    constants = "".join(
        f"\n{name}: Final = {tuple(value) if isinstance(value, list) else value!r}"
        for name, value in file.constants.items()
    )
    head = _HEAD.format(
        mark=_MARK,
        plugin=plugin,
        names=list(owners),
        constants=f"{constants}\n" if constants else "",
    )
    return head + "".join(
        "\n\n" + "\n".join(_function(name, op)) + "\n" for name, op in functions.items()
    )


def function_name(op: str) -> str:
    """Return what the function of an op is called: ``foo.bar`` is ``foo_bar``."""
    name = op.replace(".", "_")
    return f"{name}_" if keyword.iskeyword(name) or name in _TAKEN else name


def is_written(path: Path) -> bool:
    """Whether a build wrote the file."""
    return path.name == FILE_NAME and path.read_text(encoding="utf-8").startswith(_MARK)


def write(plugin: str, file: OpsFile, package: Path) -> None:
    """Write the module into the folder of the plugin's package, and mark that as typed.

    Raises:
        BuildError: the package has a module of that name already, or an op cannot be a function.
    """
    path = package / FILE_NAME
    if path.exists() and not is_written(path):
        raise BuildError(
            f"{path} is in the way: the build writes a module of that name, with the plugin's ops"
            " as functions; rename yours"
        )
    module = module_text(plugin, file)
    try:
        compile(module, FILE_NAME, "exec")
    except SyntaxError as error:
        raise BuildError(
            f"ops.toml: an op cannot be a function of Python, {error.msg}:"
            f" {(error.text or '').strip()}; change its arguments in the schema"
        ) from None
    path.write_text(module, encoding="utf-8")
    (package / "py.typed").touch()


def _function(name: str, op: OpContract) -> Iterator[str]:
    yield f"@op_function({op.name!r})"
    yield f"def {name}("
    yield from (f"    {each}," for each in parameters(op.schema))
    yield f") -> {returned(op.schema)}:"
    text = describe(op).replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    lines = [*f'"""{text}'.split("\n"), '"""']
    yield from (f"    {line}" if line else "" for line in lines)


def parameters(schema: Schema) -> Iterator[str]:
    """Yield the parameters, such as ``k: int = 1``, and ``*`` before those by keyword only."""
    is_keyword_only = False
    for argument in schema.arguments:
        if argument.is_keyword_only and not is_keyword_only:
            yield "*"
        is_keyword_only = argument.is_keyword_only
        yield f"{argument.name}: {_annotation(argument)}{_default(argument)}"


def returned(schema: Schema) -> str:
    """Return the annotation of what the op returns."""
    types = [_type(each.type, "list") for each in schema.returns]
    if len(types) > 1:
        return f"tuple[{', '.join(types)}]"
    return types[0] if types else "None"


def _annotation(argument: Argument) -> str:
    annotation = _type(argument.type, "Sequence")
    default = argument.default_value
    if argument.type.endswith("[]") and default is not None and not isinstance(default, list):
        # One number stands for all elements of a list with a size.
        return f"{_type(argument.type[:-2], 'Sequence')} | {annotation}"
    return annotation


def _default(argument: Argument) -> str:
    if argument.default is None:
        return ""
    default = argument.default_value
    if isinstance(default, str):
        return f" = {json.dumps(default)}"
    return f" = {tuple(default) if isinstance(default, list) else default!r}"


def _type(type_: str, sequence: str) -> str:
    if type_.endswith("?"):
        return f"{_type(type_[:-1], sequence)} | None"
    if type_.endswith("[]"):
        return f"{sequence}[{_type(type_[:-2], sequence)}]"
    return _TYPES.get(type_, type_)
