"""Reads op_plugin_functions.yaml of Ascend's op-plugin, from which torch_npu's ops are made.

An entry with ``gen_opapi`` describes the whole kernel: ``exec`` is the call of aclnn, and each
output has ``size`` and ``dtype``. The kernel of any other entry is C++ that somebody wrote.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from custom_pypto_contract import cpp_text
from custom_pypto_contract.dtypes import DTYPES
from custom_pypto_contract.errors import ContractError, did_you_mean

from . import cpp_values, torch_function, yaml_file
from .model import UNKNOWN, ImportedOp, ImportingError, Place, Subject
from .torch_function import TorchFunction
from .yaml_file import Value, one_line

_SECTIONS = ("official", "custom", "autograd", "quant")
# `symint` repeats functions of the others, for kernels that take symbolic sizes: an op here has
# its fake kernel for those.
_REPEATED = ("symint",)
_VERSIONS = "all_version"
_OLDEST = (2, 10)
"""The oldest version of torch that plugins run on."""

_INTEGRAL = [name for name in DTYPES if "int" in name or name == "bool"]

# How torch_npu binds and dispatches the same kernel: another way to it through GE or lazy fusion,
# its Python name, private formats (a launch passes the format that a tensor has).
_WITHOUT_EFFECT = ("func", "acl_op", "exposed", "internal_format_opapi", "dvm")


@dataclass(frozen=True)
class _Entry:
    """One function of the file."""

    function: TorchFunction
    keys: Mapping[str, Value]
    place: Place

    @property
    def gen_opapi(self) -> list[tuple[str, Value]] | None:
        value = self.keys.get("gen_opapi")
        pairs = None if value is None else value.pairs
        return None if pairs is None else [(one_line(key), each) for key, each in pairs]


def read(text: str, file: str, function: str | None = None) -> Iterator[ImportedOp]:
    """Return the ops in the text of the file called `file`; with `function` those of that name.

    A name without overload stands for all overloads.

    Raises:
        ImportingError: it is no such file, or has no such function.
    """
    document = yaml_file.read(text, file)
    sections = document.pairs if document is not None else None
    if sections is None or not any(one_line(key) in _SECTIONS for key, _ in sections):
        raise ImportingError(
            f"{file} has none of the lists {', '.join(_SECTIONS)}; --op-plugin takes"
            " op_plugin_functions.yaml, or a file of the same form"
        )
    entries: list[_Entry | ImportedOp] = []
    for key, section in sections:
        name = one_line(key)
        if name == _VERSIONS or name in _REPEATED:
            continue
        if name not in _SECTIONS or section.items is None:
            entries.append(_not_understood(section.place, f"{name}: {one_line(section)}"))
            continue
        entries.extend(map(_entry, section.items))
    by_name = {each.function.name: each for each in entries if isinstance(each, _Entry)}
    if function is not None:
        entries = [
            each for name, each in by_name.items() if function in (name, name.partition(".")[0])
        ]
        if not entries:
            known = {part for name in by_name for part in (name, name.partition(".")[0])}
            raise ImportingError(
                f"{file} has no function {function!r}{did_you_mean(function, sorted(known))}"
            )
    for each in entries:
        yield each if isinstance(each, ImportedOp) else _Importer(each, by_name).op()


def _entry(value: Value) -> _Entry | ImportedOp:
    keys = {one_line(key): each for key, each in value.pairs or ()}
    func = keys.get("func")
    if func is None or func.text is None or len(keys) != len(value.pairs or ()):
        return _not_understood(value.place, one_line(value))
    try:
        return _Entry(torch_function.parse(func.text), keys, value.place)
    except ContractError as error:
        return _not_understood(value.place, str(error))


def _not_understood(place: Place, text: str) -> ImportedOp:
    op = ImportedOp("", place, "")
    op.decide(place, Subject.KEY, f"not understood: {text}")
    return op


class _Importer:
    """Makes the op of one entry."""

    def __init__(self, entry: _Entry, by_name: Mapping[str, _Entry]) -> None:
        self._entry = entry
        self._by_name = by_name
        self._function = entry.function
        self._tensors = self._function.names_of("Tensor")
        self._op = ImportedOp(self._function.name, entry.place, self._function.schema)

    def op(self) -> ImportedOp:
        """Return it."""
        function, op = self._function, self._op
        for each in function.arguments:
            if each.type in ("Tensor", "Tensor?"):
                op.tensors[each.name] = {}
        self._keys()
        generated = self._generated()
        if generated is not None:
            self._launch(generated)
        elif function.returns:
            for index in range(len(function.returns)):
                op.outputs[f"out{index}"] = {"shape": UNKNOWN, "dtype": UNKNOWN}
        return op

    def _keys(self) -> None:
        for key, value in self._entry.keys.items():
            if key == "op_api":
                self._versions(value)
            elif key != "gen_opapi" and key not in _WITHOUT_EFFECT:
                self._op.decide(
                    value.place,
                    Subject.KEY,
                    f"{key}: {one_line(value)}: ops.toml has no such key; see what it does there",
                )

    def _versions(self, value: Value) -> None:
        """A list is a range of versions of torch, a text one, several or all."""
        bounds = [each.text or "" for each in value.items or ()]
        if value.text == _VERSIONS or (
            len(bounds) == 2 and _version(bounds[0]) <= _OLDEST and bounds[1] == "newest"
        ):
            return
        self._op.decide(
            value.place,
            Subject.KEY,
            f"op_api: {one_line(value)}: torch_npu has this function, or this form of it, in these"
            f" versions alone, and a plugin runs on torch >= {_OLDEST[0]}.{_OLDEST[1]}",
        )

    def _generated(self) -> _Entry | None:
        """Return the entry whose gen_opapi is this function's."""
        entry, place = self._entry, self._entry.place
        pairs = entry.gen_opapi
        if pairs is None:
            way = "acl_op alone: it has no aclnn kernel" if "op_api" not in entry.keys else ""
            self._op.decide(
                place,
                Subject.KERNEL,
                way
                or "no gen_opapi: somebody wrote its C++ (op_plugin/ops/opapi); take outputs and"
                " call from there",
            )
            return None
        inherited = dict(pairs).get("structured_inherit")
        if inherited is None:
            return entry
        if len(pairs) > 1:
            self._unknown_key(inherited, "structured_inherit beside other keys")
        other = self._by_name.get(inherited.text or "")
        if other is None or not dict(other.gen_opapi or ()).get("exec"):
            self._op.decide(
                inherited.place,
                Subject.KERNEL,
                f"structured_inherit: {one_line(inherited)}: there is no such function, or it has"
                " no exec",
            )
            return None
        return other

    def _launch(self, source: _Entry) -> None:
        function = self._function
        results = self._results(source)
        command = dict(source.gen_opapi or ()).get("exec")
        if command is None or not command.text:
            self._op.decide(source.place, Subject.KERNEL, "gen_opapi has no exec")
            return
        kernel, *passed = cpp_text.split(command.text)
        # In place, torch_npu calls the function that it inherits from, with the first argument as
        # output.
        renamed = {}
        named = function
        if source is not self._entry and function.is_in_place:
            named = source.function
            own = [each.name for each in function.arguments]
            theirs = [each.name for each in named.arguments]
            if len(theirs) != len(own) + 1:
                self._op.decide(
                    command.place,
                    Subject.KERNEL,
                    f"it inherits from {named.name}, which has not one argument more, the output",
                )
                return
            renamed = dict(zip(theirs, [*own, own[0]], strict=True))
        if not passed:
            passed = [each.name for each in named.arguments]
            if named.makes_all:
                passed += results
        constants = self._new_params(source)
        known = {*(each.name for each in named.arguments), *results}
        for index, each in enumerate(passed):
            if each in constants:
                passed[index] = constants[each]
            elif each in known:
                passed[index] = renamed.get(each, each)
            else:
                self._op.decide(
                    command.place, Subject.KERNEL, f"exec: {each!r} is no argument and no output"
                )
        if re.fullmatch(r"aclnn\w+", kernel) is None:
            self._op.decide(command.place, Subject.KERNEL, f"exec: {kernel!r} is no aclnn kernel")
        self._op.launch = f"{kernel}({', '.join(passed)})"

    def _new_params(self, source: _Entry) -> dict[str, str]:
        """Return the values of the locals that C++ computes before the call."""
        constants = {}
        strings = self._function.names_of("str")
        value = dict(source.gen_opapi or ()).get("new_params")
        for key, each in (value.pairs if value is not None else None) or ():
            name = one_line(key)
            read = cpp_values.read_argument(each.text or "", strings)
            if read is None:
                self._op.decide(
                    each.place,
                    Subject.KERNEL,
                    f"new_params: {name} = {one_line(each)}: C++ computes what the kernel gets",
                )
            constants[name] = UNKNOWN if read is None else read
        return constants

    def _results(self, source: _Entry) -> list[str]:
        """Read size and dtype of each output; return the names of those that the op makes."""
        function = self._function
        made = []
        for key, value in source.gen_opapi or ():
            if key in ("exec", "new_params", "structured_inherit"):
                continue
            if key in ("cpu_scalar_h2d", "cpu_scalar_op"):
                self._op.decide(
                    value.place,
                    Subject.NARROWER,
                    f"{key}: {one_line(value)}: torch_npu takes a tensor of one number on the CPU"
                    " here; the op refuses it, as every tensor on another device",
                )
                continue
            if key == "integral_identity_tensor":
                self._refuse_integral(value)
                continue
            if value.pairs is None:
                self._unknown_key(value, f"{key}: {one_line(value)}")
                continue
            if function.is_in_place:
                # Its result is its first argument; torch_npu reads neither size nor dtype.
                continue
            if function.out and (key not in function.out or key not in self._op.tensors):
                self._unknown_key(value, f"{key} is no output tensor of this function")
                continue
            table = {one_line(name): each for name, each in value.pairs}
            for name in table:
                # `name` is for named tensors, which ops do not have.
                if name not in ("size", "dtype", "name"):
                    self._unknown_key(table[name], f"{key}.{name}: {one_line(table[name])}")
            if function.out:
                self._output(key, self._op.tensors[key], table)
            else:
                made.append(key)
                self._op.outputs[key] = {"shape": UNKNOWN, "dtype": UNKNOWN}
                for missing in {"size", "dtype"} - set(table):
                    subject = Subject.SHAPE if missing == "size" else Subject.DTYPE
                    self._op.decide(value.place, subject, f"{key} has no {missing}")
                self._output(key, self._op.outputs[key], table)
        if len(made) != len(function.returns):
            self._op.decide(
                source.place,
                Subject.SHAPE,
                f"{len(made)} outputs are described, and the function makes"
                f" {len(function.returns)}",
            )
        return made

    def _output(self, key: str, output: dict[str, str], table: Mapping[str, Value]) -> None:
        size, dtype = table.get("size"), table.get("dtype")
        if size is not None and size.text != key:
            shape = self._shape(size)
            if shape is not None:
                output["shape"] = shape
        if dtype is not None and dtype.text != key:
            read = cpp_values.read_dtype(dtype.text or "", self._tensors)
            if read is None:
                text = f"dtype of {key}: {one_line(dtype)}: C++ computes it"
                self._op.decide(dtype.place, Subject.DTYPE, text)
            else:
                output["dtype"] = read

    def _shape(self, size: Value) -> str | None:
        text = size.text or ""
        tensor = cpp_values.read_tensor(text, self._tensors)
        if tensor is not None:
            return self._op.give_shape(tensor)
        sizes = cpp_values.read_sizes(text, self._tensors, self._function.names_of("int"))
        if sizes is None:
            self._op.decide(size.place, Subject.SHAPE, f"size: {one_line(size)}: C++ computes it")
            return None
        dims = []
        for each in sizes:
            if isinstance(each, str):
                dims.append(each)
                continue
            name, axis = each
            self._at_least(name, axis + 1 if axis >= 0 else -axis)
            dims.append(f"{name}.shape[{axis}]")
        return " ".join(dims)

    def _at_least(self, tensor: str, ndim: int) -> None:
        """Have the op refuse a tensor without a dim that an output has."""
        rule = {
            "argument": tensor,
            "check": f"{tensor}.ndim >= {ndim}",
            "message": f"must be at least {ndim}-D, got {{{tensor}.ndim}}-D {{{tensor}.shape}}",
        }
        if rule not in self._op.rules:
            self._op.rules.append(rule)

    def _refuse_integral(self, value: Value) -> None:
        """Have the op refuse what torch_npu returns as it is, without the kernel."""
        tensor = value.text or ""
        if tensor not in self._tensors:
            self._unknown_key(value, f"integral_identity_tensor: {one_line(value)}")
            return
        dtypes = ", ".join(_INTEGRAL)
        self._op.rules.append(
            {
                "argument": tensor,
                "check": f"{tensor}.dtype not in ({dtypes})",
                "message": f"must not be of an integral dtype, got {{{tensor}.dtype}}: the result"
                " would be the same tensor",
            }
        )
        self._op.decide(
            value.place,
            Subject.NARROWER,
            f"integral_identity_tensor: {tensor}: torch_npu returns an integral tensor as it is;"
            " the op refuses it",
        )

    def _unknown_key(self, value: Value, text: str) -> None:
        self._op.decide(value.place, Subject.KEY, f"gen_opapi: {text}: ops.toml has no such key")


def _version(text: str) -> tuple[int, ...]:
    """Return ``v2.10`` as numbers; for anything else a version that nobody has."""
    match = re.fullmatch(r"v(\d{1,9})\.(\d{1,9})", text)
    return (int(match[1]), int(match[2])) if match else (1 << 30,)
