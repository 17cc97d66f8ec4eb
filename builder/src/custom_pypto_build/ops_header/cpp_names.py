"""C++ names of ops, arguments, dims and constants."""

from __future__ import annotations

import json

from custom_pypto_contract.contract import OpContract
from custom_pypto_contract.nodes import list_of
from custom_pypto_contract.op_table import Constant
from custom_pypto_contract.schema import Argument

_ELEMENTS = {
    "Tensor": "Tensor",
    "int": "int64_t",
    "float": "double",
    "bool": "bool",
    "str": "std::string_view",
    "ScalarType": "ScalarType",
    "Device": "custom_pypto::Device",
}
# Words of C++, and names in the generated code around a name.
_TAKEN = frozenset(
    """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t
    char8_t class co_await co_return co_yield compl concept const const_cast consteval constexpr
    constinit continue decltype default delete do double dynamic_cast else enum explicit export
    extern false float for friend goto if inline int long mutable namespace new noexcept not not_eq
    nullptr operator or or_eq private protected public register reinterpret_cast requires return
    short signed sizeof static static_assert static_cast struct switch template this thread_local
    throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t while
    xor xor_eq
    EOF NULL errno int64_t linux std uint64_t unix
    Arguments CallShape Kernel Outputs ScalarType Tensor custom_pypto ops
    """.split()  # noqa: SIM905
)
# The members of an op's struct. No op can have the name of one.
_MEMBERS = frozenset(
    """
    allocate argument_names arguments call_shape check check_limits kernels launch
    mutable_arguments name run schema returned
    """.split()  # noqa: SIM905
)


def identifier(name: str) -> str:
    """Return the C++ name of an argument, a dim or an output."""
    return f"{name}_" if name in _TAKEN else name


def member(name: str) -> str:
    """Return the C++ of an argument or a dim, or of the element ``xs[i]`` of one."""
    return identifier(list_of(name)) + name[len(list_of(name)) :]


def info(name: str) -> str:
    """Return the name of the TensorInfo of a tensor, of the first in a list, or of ``xs[i]``."""
    return f"{list_of(name)}_info" if list_of(name) == name else f"{list_of(name)}_info_i"


def struct_name(name: str) -> str:
    """Return the name of the struct of an op or a group: of ``foo.bar`` it is foo_bar."""
    name = name.replace(".", "_")
    return f"{name}_" if name in _MEMBERS else identifier(name)


def camel(name: str) -> str:
    """Return the name of the enumeration of `name`'s values."""
    words = "".join(part.capitalize() for part in name.split("_"))
    return identifier(words) if words.isidentifier() else f"Choice{words}"


def enumerated(op: OpContract) -> dict[str, list[str]]:
    """Return the string arguments that select variants and are an enumeration in C++."""
    strings = {each.name for each in op.arguments if each.type == "str"}
    return {
        selector: values
        for selector, values in op.selectors.items()
        if selector in strings and all(map(is_enumerator, values))
    }


def is_enumerator(value: object) -> bool:
    """Whether it can be an enumerator as it is."""
    return isinstance(value, str) and value.isidentifier() and identifier(value) == value


def quoted(value: str) -> str:
    """Return a literal of C++; as `??` may begin a trigraph, no two stand together."""
    return json.dumps(value, ensure_ascii=False).replace("??", '?""?').replace("??", '?""?')


def constant_definition(name: str, value: Constant) -> str:
    """Return the definition of a named constant."""
    values = value if isinstance(value, list) else [value]
    type_ = value_type({bool: "bool", int: "int", float: "float", str: "str"}[type(values[0])])
    written = ", ".join(map(constant, values))
    if isinstance(value, list):
        type_, written = f"std::array<{type_}, {len(values)}>", f"{{{written}}}"
    return f"inline constexpr {type_} {identifier(name)} = {written};"


def dim_type(op: OpContract, dim: str) -> str:
    """Return the type of a dim in CallShape: a variadic one is a span."""
    type_ = "custom_pypto::Span" if op.dims[dim] else "int64_t"
    return f"custom_pypto::OfElements<{type_}>" if dim in op.dims_of_elements else type_


def argument_type(argument: Argument) -> str:
    """Return the type of a kernel's parameter: no ownership where that is possible."""
    type_ = value_type(argument.type)
    if argument.type in ("Tensor", "Tensor?") or "vector" in type_:
        return f"const {type_}&"
    return type_


def value_type(type_: str) -> str:
    """Return the C++ type that a schema type has."""
    if type_.endswith("?"):
        inner = value_type(type_[:-1])
        return f"std::optional<{inner}>"
    if type_.endswith("[]"):
        inner = value_type(type_[:-2]).replace("std::string_view", "std::string")
        return f"std::vector<{inner}>"
    return _ELEMENTS[type_]


def constant(value: object) -> str:
    """Return a literal of C++."""
    if value is None:
        return "std::nullopt"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        # An int would overflow where int64_t does not.
        return f"int64_t{{{value}}}"
    return quoted(value) if isinstance(value, str) else repr(value)
