"""Reads op_plugin_functions.yaml of Ascend's op-plugin, from which torch_npu's ops are made.

An entry with ``gen_opapi`` describes the whole kernel: ``exec`` is the call of aclnn, and each
output has ``size`` and ``dtype``. The kernel of any other entry is C++ that somebody wrote.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from custom_pypto_contract import cpp_text
from custom_pypto_contract.abi import OLDEST_TORCH, TORCH_TARGET
from custom_pypto_contract.dtypes import DTYPES
from custom_pypto_contract.errors import ContractError, did_you_mean

from . import cpp_values, torch_function, yaml_file
from .model import UNKNOWN, ImportedOp, ImportingError, Place, Subject
from .torch_function import TorchFunction
from .yaml_file import Value, one_line

_SECTIONS = ("official", "custom", "autograd", "quant")
_VERSIONS = "all_version"
# `symint` repeats functions of the others, for kernels that take symbolic sizes: an op here has
# its fake kernel for those.
_SKIPPED = (_VERSIONS, "symint")

_INTEGRAL = [name for name in DTYPES if "int" in name or name == "bool"]

# How torch_npu binds and dispatches the same kernel: another way to it through GE or lazy fusion,
# its Python name, private formats (a launch passes the format that a tensor has).
_WITHOUT_EFFECT = ("func", "acl_op", "exposed", "internal_format_opapi", "dvm")
_NO_KEY = "ops.toml has no such key"


@dataclass(frozen=True)
class _Entry:
    """One function of the file; `generated` is what ``gen_opapi`` says, None without it."""

    function: TorchFunction
    keys: Mapping[str, Value]
    place: Place
    generated: Mapping[str, Value] | None


def read(text: str, file: str, function: str | None = None) -> Iterator[ImportedOp]:
    """Return the ops in the text of the file called `file`; `function` selects ops of that name.

    A name without overload stands for all overloads.

    Raises:
        ImportingError: it is no such file, or has no such function.
    """
    document = yaml_file.read(text, file)
    sections = document.table if document is not None else None
    if sections is None or not any(name in _SECTIONS for name in sections):
        raise ImportingError(
            f"{file} has none of the lists {', '.join(_SECTIONS)}; --op-plugin takes"
            " op_plugin_functions.yaml, or a file of the same form"
        )
    entries: list[_Entry | ImportedOp] = []
    for name, section in sections.items():
        if name in _SECTIONS and section.items is not None:
            entries.extend(map(_entry, section.items))
        elif name not in _SKIPPED:
            entries.append(_not_understood(section.place, f"{name}: {one_line(section)}"))
    by_name = {each.function.name: each for each in entries if isinstance(each, _Entry)}
    if function is not None:
        names = {name: (name, name.partition(".")[0]) for name in by_name}
        entries = [by_name[name] for name, both in names.items() if function in both]
        if not entries:
            known = sorted({each for both in names.values() for each in both})
            raise ImportingError(
                f"{file} has no function {function!r}{did_you_mean(function, known)}"
            )
    for each in entries:
        yield each if isinstance(each, ImportedOp) else _Importer(each, by_name).op()


def _entry(value: Value) -> _Entry | ImportedOp:
    keys = value.table or {}
    func = keys.get("func")
    if func is None or func.text is None:
        return _not_understood(value.place, one_line(value))
    generated = keys["gen_opapi"].table if "gen_opapi" in keys else None
    try:
        return _Entry(torch_function.parse(func.text), keys, value.place, generated)
    except ContractError as error:
        return _not_understood(value.place, str(error))


def _not_understood(place: Place, text: str) -> ImportedOp:
    op = ImportedOp("", place, "")
    op.decide(place, Subject.KEY, f"not understood: {text}")
    return op


class _Importer:
    def __init__(self, entry: _Entry, by_name: Mapping[str, _Entry]) -> None:
        self._entry = entry
        self._by_name = by_name
        self._function = entry.function
        self._tensors = self._function.names_of("Tensor")
        self._op = ImportedOp(self._function.name, entry.place, self._function.schema)

    def op(self) -> ImportedOp:
        function, op = self._function, self._op
        for each in function.arguments:
            if each.type in ("Tensor", "Tensor?"):
                op.tensors[each.name] = {}
        for key, value in self._entry.keys.items():
            if key == "op_api":
                self._versions(value)
            elif key != "gen_opapi" and key not in _WITHOUT_EFFECT:
                self._decide(Subject.KEY, key, value, f"{_NO_KEY}; see what it does there")
        source = self._source()
        if source is not None:
            self._launch(source)
        else:
            for index in range(len(function.returns)):
                op.outputs[f"out{index}"] = {"shape": UNKNOWN, "dtype": UNKNOWN}
        return op

    def _decide(self, subject: Subject, key: str, value: Value, problem: str) -> None:
        self._op.decide(value.place, subject, f"{key}: {one_line(value)}: {problem}")

    def _versions(self, value: Value) -> None:
        """A list is a range of versions of torch, a text one, several or all."""
        bounds = [each.text or "" for each in value.items or ()]
        if value.text == _VERSIONS or (
            len(bounds) == 2 and _version(bounds[0]) <= TORCH_TARGET and bounds[1] == "newest"
        ):
            return
        problem = (
            "torch_npu has this function, or this form of it, in these versions alone, and a"
            f" plugin runs on torch >= {OLDEST_TORCH}"
        )
        self._decide(Subject.KEY, "op_api", value, problem)

    def _source(self) -> _Entry | None:
        """Return the entry whose gen_opapi is this function's."""
        entry, generated = self._entry, self._entry.generated
        if generated is None:
            text = "no gen_opapi: somebody wrote its C++ (op_plugin/ops/opapi); take outputs and"
            text += " call from there"
            if "op_api" not in entry.keys:
                text = "acl_op alone: it has no aclnn kernel"
            self._op.decide(entry.place, Subject.KERNEL, text)
            return None
        inherited = generated.get("structured_inherit")
        if inherited is None:
            return entry
        if len(generated) > 1:
            self._unknown_key(inherited, "structured_inherit beside other keys")
        other = self._by_name.get(inherited.text or "")
        if other is not None and "exec" in (other.generated or ()):
            return other
        problem = "there is no such function, or it has no exec"
        self._decide(Subject.KERNEL, "structured_inherit", inherited, problem)
        return None

    def _launch(self, source: _Entry) -> None:
        generated = source.generated or {}
        results = self._results(source)
        command = generated.get("exec")
        if command is None or not command.text:
            self._op.decide(source.place, Subject.KERNEL, "gen_opapi has no exec")
            return
        kernel, *passed = cpp_text.split(command.text)
        # In place, torch_npu calls the function that it inherits from, with the first argument as
        # output.
        renamed = {}
        named = self._function
        if source is not self._entry and named.is_in_place:
            own = [each.name for each in named.arguments]
            named = source.function
            theirs = [each.name for each in named.arguments]
            if len(theirs) != len(own) + 1:
                text = f"it inherits from {named.name}, which has not one argument more, the output"
                self._op.decide(command.place, Subject.KERNEL, text)
                return
            renamed = dict(zip(theirs, [*own, own[0]], strict=True))
        if not passed:
            passed = [each.name for each in named.arguments]
            passed += [] if any(each.is_mutable for each in named.arguments) else results
        known = {each: each for each in (*(each.name for each in named.arguments), *results)}
        values = {**known, **renamed, **self._new_params(generated.get("new_params"))}
        for each in passed:
            if each not in values:
                text = f"exec: {each!r} is no argument and no output"
                self._op.decide(command.place, Subject.KERNEL, text)
        if re.fullmatch(r"aclnn\w+", kernel) is None:
            self._op.decide(command.place, Subject.KERNEL, f"exec: {kernel!r} is no aclnn kernel")
        self._op.launch = f"{kernel}({', '.join(values.get(each, each) for each in passed)})"

    def _new_params(self, value: Value | None) -> dict[str, str]:
        """Return the values of the locals that C++ computes before the call."""
        constants = {}
        table = value.table if value is not None else None
        for name, each in (table or {}).items():
            read = cpp_values.read_argument(each.text or "", self._function.names_of("str"))
            if read is None:
                text = f"new_params: {name} = {one_line(each)}: C++ computes what the kernel gets"
                self._op.decide(each.place, Subject.KERNEL, text)
            constants[name] = UNKNOWN if read is None else read
        return constants

    def _results(self, source: _Entry) -> list[str]:
        """Read size and dtype of each output; return the names of those that the op makes."""
        function = self._function
        made = []
        for key, value in (source.generated or {}).items():
            if key in ("exec", "new_params", "structured_inherit"):
                continue
            if key in ("cpu_scalar_h2d", "cpu_scalar_op"):
                problem = (
                    "torch_npu takes a tensor of one number on the CPU here; the op refuses it, as"
                    " every tensor on another device"
                )
                self._decide(Subject.NARROWER, key, value, problem)
            elif key == "integral_identity_tensor":
                self._refuse_integral(value)
            elif value.table is None:
                self._unknown_key(value, f"{key}: {one_line(value)}")
            elif function.is_in_place:
                # Its result is its first argument; torch_npu reads neither size nor dtype.
                continue
            elif not function.out:
                made.append(key)
                self._op.outputs[key] = {"shape": UNKNOWN, "dtype": UNKNOWN}
                for missing, subject in (("size", Subject.SHAPE), ("dtype", Subject.DTYPE)):
                    if missing not in value.table:
                        self._op.decide(value.place, subject, f"{key} has no {missing}")
                self._output(key, self._op.outputs[key], value.table)
            elif key in function.out and key in self._op.tensors:
                self._output(key, self._op.tensors[key], value.table)
            else:
                self._unknown_key(value, f"{key} is no output tensor of this function")
        if len(made) != len(function.returns):
            text = f"{len(made)} outputs are described, and the function makes"
            text += f" {len(function.returns)}"
            self._op.decide(source.place, Subject.SHAPE, text)
        return made

    def _output(self, key: str, output: dict[str, str], table: Mapping[str, Value]) -> None:
        for name in table:
            # `name` is for named tensors, which ops do not have.
            if name not in ("size", "dtype", "name"):
                self._unknown_key(table[name], f"{key}.{name}: {one_line(table[name])}")
        size, dtype = table.get("size"), table.get("dtype")
        if size is not None and size.text != key:
            shape = self._shape(size)
            if shape is not None:
                output["shape"] = shape
        if dtype is not None and dtype.text != key:
            read = cpp_values.read_dtype(dtype.text or "", self._tensors)
            if read is None:
                self._decide(Subject.DTYPE, f"dtype of {key}", dtype, "C++ computes it")
            else:
                output["dtype"] = read

    def _shape(self, size: Value) -> str | None:
        text = size.text or ""
        tensor = text.strip().removesuffix(".sizes()")
        if tensor in self._tensors:
            return self._op.give_shape(tensor)
        sizes = cpp_values.read_sizes(text, self._tensors, self._function.names_of("int"))
        if sizes is None:
            self._decide(Subject.SHAPE, "size", size, "C++ computes it")
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
        key, tensor = "integral_identity_tensor", value.text or ""
        if tensor not in self._tensors:
            self._unknown_key(value, f"{key}: {one_line(value)}")
            return
        rule = {
            "argument": tensor,
            "check": f"{tensor}.dtype not in ({', '.join(_INTEGRAL)})",
            "message": f"must not be of an integral dtype, got {{{tensor}.dtype}}: the result"
            " would be the same tensor",
        }
        self._op.rules.append(rule)
        problem = "torch_npu returns an integral tensor as it is; the op refuses it"
        self._decide(Subject.NARROWER, key, value, problem)

    def _unknown_key(self, value: Value, text: str) -> None:
        self._op.decide(value.place, Subject.KEY, f"gen_opapi: {text}: {_NO_KEY}")


def _version(text: str) -> tuple[int, ...]:
    """Return ``v2.10`` as numbers; for anything else a version that nobody has."""
    match = re.fullmatch(r"v(\d{1,9})\.(\d{1,9})", text)
    return (int(match[1]), int(match[2])) if match else (1 << 30,)
