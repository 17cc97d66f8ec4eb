"""What a contract gives an op: the fake kernel, the checks of a Python kernel, the converter."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

from custom_pypto_discovery.printable import printable

from . import bind_arguments, check_limits
from .lazy import BY_DATA, LazyContract

if TYPE_CHECKING:
    from custom_pypto_contract.call import Call
    from custom_pypto_contract.contract import OpContract


def fake_kernel(contract: LazyContract) -> Callable[..., Any]:
    """Return the fake kernel of an op, for symbolic and concrete sizes alike.

    It refuses every call that kernels refuse without reading values, with the same text.
    """

    def fake(*args: Any, **kwargs: Any) -> Any:
        op = contract.op
        from .evaluation import empty_outputs

        if op.outputs is None:
            raise RuntimeError(
                f"{op.name} has no fake kernel, so it cannot be compiled or exported: say in"
                " ops.toml what its outputs are, or return one from the hook custom_pypto_fakes"
            )
        given = bind_arguments(op, args, kwargs)
        try:
            made = empty_outputs(op, given)
        except BY_DATA as error:
            raise contract.blame(error) from error
        return made[0] if len(made) == 1 else made or None

    fake.__name__ = fake.__qualname__ = contract.function_name
    return fake


def checked_fake(contract: LazyContract, fake: Callable[..., Any]) -> Callable[..., Any]:
    """Return `fake`, the plugin's own, with the checks that a generated one has."""

    @wraps(fake)
    def checked(*args: Any, **kwargs: Any) -> Any:
        _evaluate(contract, bind_arguments(contract.op, args, kwargs))
        return fake(*args, **kwargs)

    return checked


def _evaluate(contract: LazyContract, given: dict[str, Any]) -> Any:
    from .evaluation import Evaluation

    try:
        return Evaluation(contract.op, given).run_checks()
    except BY_DATA as error:
        raise contract.blame(error) from error


def checked_kernel(contract: LazyContract, kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Return `kernel`, a Python function, with the checks that a kernel of a library has.

    A RuntimeError, also of torch's functions that it calls, gets the op's name and is printable.
    """

    @wraps(kernel)
    def checked(*args: Any, **kwargs: Any) -> Any:
        op = contract.op
        from .evaluation import describe_wrong_output

        given = bind_arguments(op, args, kwargs)
        evaluation = _evaluate(contract, given)
        try:
            results = kernel(*args, **kwargs)
        except RuntimeError as error:
            # A caller may catch a subclass, such as torch.OutOfMemoryError.
            if type(error) is not RuntimeError:
                raise
            text = str(error)
            named = text if text.startswith(f"{op.name}: ") else f"{op.name}: {text}"
            if (shown := printable(named)) == text:
                raise
            raise RuntimeError(shown) from error
        returned = (results,) if len(op.schema.returns) == 1 else results
        # `OpArguments.with_checks` refuses results that are no tuple.
        values = returned if isinstance(returned, tuple | list) else ()
        try:
            pairs = zip(op.outputs or (), values, strict=False)
            faults = [describe_wrong_output(*each, given, evaluation) for each in pairs]
        except BY_DATA as error:
            raise contract.blame(error) from error
        if fault := next(filter(None, faults), None):
            raise RuntimeError(f"{op.name}: its kernel returns {fault}")
        return results

    return checked


def graph_converter(contract: LazyContract) -> Callable[..., Any]:
    """Return the converter of an op whose contract has a graph line.

    It makes a node of the first of the lines' operators that the graph engine has.
    """

    def convert(*args: Any, meta_outputs: Any = None, **kwargs: Any) -> Any:
        from custom_pypto.core.ge_operators import is_registered

        op = contract.op
        given = bind_arguments(op, args, kwargs)
        *preferred, last = op.npu.graph
        call = next((each for each in preferred if is_registered(each.name)), last)
        # The operator X is the kernel aclnnX.
        for kernel in ("", f"aclnn{call.name}"):
            if kernel in op.npu.limits:
                check_limits(op, kernel, given)
        made = _node(op, call, given)
        results = zip(call.results, made if isinstance(made, tuple) else [made], strict=True)
        # torchair finds an argument that is written in place among the node's results.
        returned = tuple(each for name, each in results if name not in call.in_place)
        return returned[0] if len(returned) == 1 else returned or None

    convert.__name__ = convert.__qualname__ = contract.function_name
    return convert


def _node(op: OpContract, call: Call, given: dict[str, Any]) -> Any:
    from custom_pypto_contract.call import GRAPH_ATTRIBUTES
    from torchair import ge

    inputs: dict[str, Any] = {}
    attributes: dict[str, Any] = {}

    def attribute(type_: str, of: Any) -> Any:
        if type_ in ("int", "int[]"):
            # A symbol, to torchair a tensor, becomes the number that it is; torch guards that.
            of = getattr(of, "meta", of)
            of = int(of) if type_ == "int" else [*map(int, of)]
        return getattr(ge.attr, GRAPH_ATTRIBUTES[type_])(of)

    for parameter, value in call.values:
        match value.node:
            case ast.List([ast.Constant(), *_]):
                attributes[parameter] = attribute("int[]", ast.literal_eval(value.node))
            case ast.List(elements):
                inputs[parameter] = [given[ast.unparse(each)] for each in elements]
            case ast.Name(name) if "Tensor" in op.argument(name).type:
                inputs[parameter] = given[name]
            case ast.Name(name):
                attributes[parameter] = attribute(op.argument(name).type, given[name])
            case ast.Constant(constant):
                attributes[parameter] = attribute(type(constant).__name__, constant)
    parts = {"attrs": attributes} if attributes else {}
    return ge.custom_op(call.name, inputs=inputs, outputs=list(call.results), **parts)
