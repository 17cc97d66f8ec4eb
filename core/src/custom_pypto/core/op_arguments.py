"""The arguments of an op by its schema, and their checks before a Python kernel runs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from typing import Any, NoReturn

import torch
from torch.utils._pytree import tree_map_only

from custom_pypto.core import dispatcher
from custom_pypto.core.argument_memory import Argument, check_writes, count_writes, expect_memory
from custom_pypto.core.errors import LoadError


class OpArguments:
    """The arguments of an op that is registered."""

    def __init__(self, op: str) -> None:
        self._op = op
        self._schema = dispatcher.schema_of(op)
        arguments = self._schema.arguments
        self._names = [each.name for each in arguments]
        self._required = [each.name for each in arguments if each.type.kind() == "TensorType"]
        # Those that hold tensors, and whether they are written.
        self._written = {
            each.name: each.alias_info is not None and each.alias_info.is_write
            for each in arguments
            if "Tensor" in str(each.type)
        }
        # Torch takes no dispatch key from these.
        self._without_key = {
            each.name for each in arguments if str(each.type) == "Optional[List[Tensor]]"
        }
        self.has_mutated = any(self._written.values())

    def with_checks(
        self, function: Callable[..., Any], *, uses_memory: bool = True, is_fake: bool = False
    ) -> Callable[..., Any]:
        """Return `function` with the checks that a kernel of a library has.

        None where the schema says Tensor is an error, as an argument and as a result. With
        `uses_memory`, so are a tensor that has no elements in memory and an argument that must not
        be written in place. The version counters of written arguments are bumped before `function`
        runs, unless it is a fake.
        """
        are_tensors = tensor_returns(self._schema)
        what = "fake kernel" if is_fake else "kernel"

        @wraps(function)
        def checked(*args: Any, **kwargs: Any) -> Any:
            given = self._bind(args, kwargs)
            if uses_memory:
                self._check_memory(given, is_fake=is_fake)
            results = function(*args, **kwargs)
            if are_tensors and (fault := describe_wrong(results, are_tensors)):
                raise RuntimeError(f"{self._op}: its {what} {fault}")
            return results

        return checked

    def refusal(self, keys: Sequence[str], check: Callable[..., Any]) -> Callable[..., NoReturn]:
        """Return a kernel that refuses each call, and says why. `keys` have kernels.

        `check` refuses what the op's contract refuses.
        """

        def refuse(*args: Any, **kwargs: Any) -> NoReturn:
            devices = []
            for name, _, tensor in self._tensors(self._bind(args, kwargs)):
                expect_memory(self._op, name, tensor)
                if name.partition("[")[0] not in self._without_key:
                    devices.append(tensor.device.type)
            if not devices:
                check(*args, **kwargs)
            raise NotImplementedError(
                f"{self._op}: no kernel for {devices[0] if devices else 'a call without tensors'};"
                f" there are kernels for {', '.join(keys)}"
            )

        return refuse

    def resolved(self, kernel_below: Callable[..., Any]) -> Callable[..., Any]:
        """Return a kernel that resolves the negative and conjugate bits of arguments.

        It calls `kernel_below` with the remaining dispatch keys and resolved copies. A view with
        such a bit cannot be written in place: torch's own kernel for these bits would write to a
        copy, and fail after that.
        """

        def call(keys: torch.DispatchKeySet, *args: Any, **kwargs: Any) -> Any:
            for name, is_mutated, tensor in self._tensors(self._bind(args, kwargs)):
                if is_mutated and (tensor.is_neg() or tensor.is_conj()):
                    bit, of = ("negative", "neg") if tensor.is_neg() else ("conjugate", "conj")
                    raise RuntimeError(
                        f"{self._op}: argument '{name}' is written in place, but is a view with the"
                        f" {bit} bit; pass a tensor of its own, such as its resolve_{of}()"
                    )
            return kernel_below(
                keys, *map(_resolve, args), **{name: _resolve(kwargs[name]) for name in kwargs}
            )

        return call

    def map_mutated(
        self, change: Callable[[torch.Tensor], torch.Tensor], args: Sequence[Any], kwargs: Any
    ) -> tuple[list[Any], dict[str, Any]]:
        """Return the arguments of a call with `change` applied to each tensor that it writes."""

        def map_one(name: str, value: Any) -> Any:
            return tree_map_only(torch.Tensor, change, value) if self._written.get(name) else value

        changed = list(map(map_one, self._names, args))
        return changed, {name: map_one(name, value) for name, value in kwargs.items()}

    def _bind(self, args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Return a call's arguments by name; torch leaves out what equals its default."""
        given = dict(zip(self._names, args, strict=False)) | kwargs
        for name in self._required:
            if given.get(name) is None:
                raise RuntimeError(f"{self._op}: argument '{name}' must be a tensor, got None")
        return given

    def _tensors(self, given: dict[str, Any]) -> Iterator[Argument]:
        """Yield the tensors of a call."""
        for name, is_mutated in self._written.items():
            value = given.get(name)
            if isinstance(value, torch.Tensor):
                yield name, is_mutated, value
            elif isinstance(value, list | tuple):
                for index, each in enumerate(value):
                    if isinstance(each, torch.Tensor):
                        yield f"{name}[{index}]", is_mutated, each

    def _check_memory(self, given: dict[str, Any], *, is_fake: bool) -> None:
        tensors = list(self._tensors(given))
        for name, _, tensor in tensors:
            expect_memory(self._op, name, tensor)
        if self.has_mutated:
            check_writes(self._op, tensors)
            if not is_fake:
                count_writes(self._op, tensors)

    def expect_taken_by(self, function: Callable[..., Any], what: str) -> None:
        """Check that `function` takes these arguments by their names.

        Raises:
            LoadError: it does not. `what` names it in the text, such as "the CPU kernel".
        """
        try:
            parameters = inspect.signature(function).parameters.values()
        except (TypeError, ValueError):
            # A built-in function without a signature.
            return
        if any(each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD) for each in parameters):
            return
        given = [(each.name, each.kind is each.KEYWORD_ONLY) for each in parameters]
        declared = [(each.name, each.kwarg_only) for each in self._schema.arguments]
        defaults = {each.name: each.default for each in parameters}
        # torch leaves out what equals the schema's default.
        if given != declared or not all(
            _is_default(defaults[each.name], each.default_value)
            for each in self._schema.arguments
            if each.has_default_value()
        ):
            raise LoadError(
                f"{self._op}: {what} must take the arguments of the schema, {self._schema}, by"
                f" their names and with its defaults, but it is"
                f" {getattr(function, '__name__', 'function')}{inspect.signature(function)}"
            )


def _is_default(value: Any, default: Any) -> bool:
    """Whether torch makes the `default` of a schema from a value, such as int[2] from an int."""
    if isinstance(default, list):
        values = list(value) if isinstance(value, list | tuple) else [value] * len(default)
        return values == default and (bool(default) or isinstance(value, list | tuple))
    if isinstance(default, torch.device):
        value, default = str(value), str(default)
    is_of_type = type(value) is type(default) or (type(value), type(default)) == (int, float)
    return is_of_type and bool(value == default)


def tensor_returns(schema: Any) -> tuple[bool, ...]:
    """Return, for each result of a schema, whether it is a tensor and never None; () if none is."""
    found = tuple(each.type.kind() == "TensorType" for each in schema.returns)
    return found if any(found) else ()


def describe_wrong(results: object, are_tensors: Sequence[bool]) -> str:
    """Say how results differ from the schema; '' if they do not. See `tensor_returns`."""
    if results is None:
        return "returns None, but the schema says Tensor; is a `return` missing?"
    count = len(are_tensors)
    if count == 1 and not isinstance(results, torch.Tensor):
        return f"returns a {type(results).__name__}, but the schema says Tensor"
    if count == 1:
        return ""
    if not isinstance(results, tuple | list) or len(results) != count:
        given = f"{len(results)} results" if isinstance(results, tuple | list) else "one result"
        return f"returns {given}, but the schema says {count}; return them as a tuple"
    for position, (value, is_tensor) in enumerate(zip(results, are_tensors, strict=True)):
        if is_tensor and not isinstance(value, torch.Tensor):
            found = "None" if value is None else f"a {type(value).__name__}"
            return f"returns {found} as result {position}, but the schema says Tensor"
    return ""


def _resolve(value: Any) -> Any:
    return tree_map_only(torch.Tensor, lambda each: each.resolve_neg().resolve_conj(), value)
