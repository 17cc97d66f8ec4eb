"""The expressions of a contract in C++, where `a` and `s` are an op's Arguments and CallShape."""

from __future__ import annotations

import ast

from custom_pypto_contract.attributes import ATTRIBUTES
from custom_pypto_contract.contract import OpContract
from custom_pypto_contract.dtypes import DTYPES
from custom_pypto_contract.evaluate import COMPARISONS
from custom_pypto_contract.expression_names import INFINITY
from custom_pypto_contract.nodes import INDEX, list_of

from .cpp_names import camel, constant, enumerated, identifier, info, member, quoted

# Functions of Operands, in custom_pypto/op_contract.h.
_OPERATIONS: dict[type[ast.operator], str] = {
    ast.Add: "sum",
    ast.Sub: "difference",
    ast.Mult: "product",
    ast.FloorDiv: "quotient",
    ast.Mod: "remainder",
}


class Expressions:
    """Writes the expressions of one op. They read a tensor `x` through a TensorInfo, `x_info`."""

    def __init__(self, op: OpContract) -> None:
        self.op = op
        self.types = {argument.name: argument.type for argument in op.arguments}
        self.enums = enumerated(op)

    def text(self, node: ast.expr) -> str:
        """Return an expression in C++."""
        match node:
            case ast.Constant(str(value)):
                return f"std::string_view({quoted(value)})"
            case ast.Constant(value):
                return constant(value)
            case ast.Name(name):
                return "custom_pypto::kInfinity" if name == INFINITY else self._name(name)
            case ast.Attribute(ast.Name(name), attribute):
                if list_of(name) in self.op.dims:
                    return f"s.{member(name)}.size"
                return f"{info(name)}.{ATTRIBUTES[attribute].cpp}"
            case ast.Subscript(ast.Attribute(ast.Name(name)), ast.Slice(upper=ast.expr() as upper)):
                return f"{info(name)}.sizes_until({self.text(upper)})"
            case ast.Subscript(ast.Attribute(ast.Name(name), attribute), index):
                return f"{info(name)}.{ATTRIBUTES[attribute].element}({self.text(index)})"
            case ast.Subscript(of, index):
                return f"{self.text(of)}[{self.text(index)}]"
            case ast.UnaryOp(ast.Not(), operand):
                return f"!({self.text(operand)})"
            case ast.UnaryOp(ast.USub(), ast.Constant() as number):
                return f"-{self.text(number)}"
            case ast.UnaryOp(ast.USub(), operand):
                return self.text(ast.BinOp(ast.Constant(0), ast.Sub(), operand))
            case ast.BinOp(left, operator, right):
                numbers = f"{self.text(left)}, {self.text(right)}"
                return f"custom_pypto::Operands{{name, {numbers}}}.{_OPERATIONS[type(operator)]}()"
            case ast.Call(_, operands):
                return f"std::min<int64_t>({{{', '.join(map(self.text, operands))}}})"
            case ast.BoolOp(operator, operands):
                sign = " && " if isinstance(operator, ast.And) else " || "
                return "(" + sign.join(map(self.text, operands)) + ")"
            case ast.Compare(left, operators, rights):
                operands = [left, *rights]
                parts = [
                    self._comparison(a, operator, b)
                    for operator, a, b in zip(operators, operands, rights, strict=False)
                ]
                return parts[0] if len(parts) == 1 else "(" + " && ".join(parts) + ")"
        raise AssertionError(f"{ast.unparse(node)} has no C++")

    def message_text(self, node: ast.expr) -> str:
        """Return an expression in a form that a message can print."""
        match node:
            case ast.Attribute(ast.Name(name), attribute) if list_of(name) in self.types:
                tensor = self.tensor(name)
                if self.types[name if name in self.types else list_of(name)].startswith("Tensor["):
                    tensor += "[0]" if name in self.types and attribute != "length" else ""
                return ATTRIBUTES[attribute].message.format(tensor)
            case ast.Name(name) if name in self.types and name not in self.op.dims:
                return f"a.{identifier(name)}"
        return self.text(node)

    def tensor(self, name: str) -> str:
        """Return a tensor that is given, a list, or a list's element ``xs[i]``."""
        given = f"a.{identifier(list_of(name))}"
        given = f"(*{given})" if self.types[list_of(name)].endswith("?") else given
        return given if name in self.types else f"{given}[i]"

    def is_bound(self, dim: str) -> str:
        """Return the condition that a call has a dim."""
        if dim in self.op.dims_of_elements:
            return f"s.{identifier(dim)}.size() > 0"
        if list_of(dim) != dim:
            return f"s.{identifier(list_of(dim))}.size() > i"
        return f"s.{identifier(dim)}{'.size' if self.op.dims[dim] else ''} >= 0"

    def _name(self, name: str) -> str:
        if name in self.op.dims:
            return f"s.{identifier(name)}"
        if name == INDEX and self.op.dims_of_elements:
            return name
        if name in self.types:
            is_optional = self.types[name].endswith("?") and self.types[name] != "Tensor?"
            return f"{'*' if is_optional else ''}a.{identifier(name)}"
        return f"ScalarType::{DTYPES[name]}"

    def _comparison(self, left: ast.expr, operator: ast.cmpop, right: ast.expr) -> str:
        match left, operator, right:
            case _, ast.NotIn(), _:
                return f"!{self._comparison(left, ast.In(), right)}"
            case ast.Attribute(_, "dtype"), ast.In(), ast.Tuple(values) if all(
                isinstance(each, ast.Name) and each.id in DTYPES for each in values
            ):
                names = ", ".join(map(self.text, values))
                return f"custom_pypto::dtype_is_of<{names}>({self.text(left)})"
            case ast.Attribute(_, "dtype"), ast.Eq(), ast.Name(dtype) if dtype in DTYPES:
                return self._comparison(left, ast.In(), ast.Tuple([right]))
            case ast.Attribute(_, "dtype"), ast.NotEq(), ast.Name(dtype) if dtype in DTYPES:
                return self._comparison(left, ast.NotIn(), ast.Tuple([right]))
            case _, ast.In(), ast.Tuple(values):
                cases = (self._comparison(left, ast.Eq(), each) for each in values)
                return f"({' || '.join(cases)})"
            case ast.Name(name), ast.Is() | ast.IsNot(), _:
                negation = "!" if isinstance(operator, ast.Is) else ""
                if name in self.op.dims:
                    return f"{negation}({self.is_bound(name)})"
                return f"{negation}a.{identifier(name)}.has_value()"
        is_equality = isinstance(operator, ast.Eq | ast.NotEq)
        sign, _ = COMPARISONS[type(operator)]
        match left, right:
            case ast.Name(name), ast.Constant(str(value)) if value in self.enums.get(name, ()):
                return f"s.{identifier(name)} {sign} {camel(name)}::{value}"
        of_dtype = any(
            isinstance(each, ast.Attribute) and each.attr == "dtype" for each in (left, right)
        )
        operands = (self._operand(each, is_equality, of_dtype) for each in (left, right))
        return f" {sign} ".join(operands)

    def _operand(self, node: ast.expr, is_equality: bool, of_dtype: bool) -> str:
        """Return an operand of a comparison, where None is equal to nothing."""
        text = self.text(node)
        if isinstance(node, ast.Compare):
            return f"({text})"
        if isinstance(node, ast.Name) and node.id not in self.op.dims:
            if of_dtype and node.id in self.types:
                return f"custom_pypto::detail::dtype_code({text})"
            if is_equality:
                return text.removeprefix("*")
        return text
