"""Calls of ops with a derivative: when they enter autograd, and that no gradient is lost."""

import pytest
from plugin_factory import Site

SCHEMA = "first(Tensor x, *, Tensor? weight=None) -> Tensor"
OPS = [SCHEMA, "firsts(Tensor[] x) -> Tensor"]
CODE = """
import torch
from custom_pypto_plugin import Autograd, hookimpl

def first(x, *, weight=None): return x * 2
def firsts(x): return x[0] * 2

@hookimpl
def custom_pypto_kernels():
    return {"first": {"CPU": first}, "firsts": {"CPU": firsts}}
@hookimpl
def custom_pypto_fakes(): return {"first": lambda x, *, weight=None: torch.empty_like(x)}
@hookimpl
def custom_pypto_autograd():
    return {
        "first": Autograd(lambda ctx, grad: torch.ops.custom_pypto.first(grad)),
        "firsts": Autograd(lambda ctx, grad: [2 * grad]),
    }
"""
# Whether a call enters the autograd kernel of torch, which is Python code.
ENTERED = """
import sys, torch, custom_pypto.core
from custom_pypto_plugin import op_function
from torch import Tensor
in_torch = torch.ops.custom_pypto.first
@op_function("first")
def op(x: Tensor, *, weight: Tensor | None = None) -> Tensor: ...
@op_function("firsts")
def of_list(x: list[Tensor]) -> Tensor: ...
x, leaf = torch.ones(3), torch.ones(3, requires_grad=True)
def enters(call, *args, **kwargs):
    found = []
    def note(frame, event, arg):
        found.append(frame.f_code.co_filename.endswith("/torch/_library/autograd.py"))
    call(*args, **kwargs)
    sys.setprofile(note)
    try:
        call(*args, **kwargs)
    finally:
        sys.setprofile(None)
    return any(found)
"""


@pytest.fixture
def plugin(site: Site) -> Site:
    site.install("first", CODE, ops=OPS, with_library=False)
    return site


def test_a_function_enters_autograd_where_a_gradient_can_flow_alone(plugin: Site) -> None:
    given = plugin.run(
        ENTERED,
        """
        without = [enters(op, x), enters(op, x=x), enters(op, x, weight=x)]
        with torch.no_grad():
            without += [enters(op, leaf)]
        with torch.inference_mode():
            without += [enters(op, leaf)]
        within = [enters(op, leaf), enters(op, x=leaf)]
        of_list((leaf,)).sum().backward()
        requires_grad = [op(each).requires_grad for each in (x, leaf)]
        give([without, within, enters(of_list, [x]), requires_grad, leaf.grad.tolist()])
        """,
    )
    assert given == [[False] * 5, [True] * 2, True, [False, True], [2, 2, 2]]


def test_a_function_can_be_compiled_and_exported(plugin: Site) -> None:
    given = plugin.run(
        "import warnings; warnings.simplefilter('ignore')",
        ENTERED,
        """
        compiled = torch.compile(op, fullgraph=True, backend="aot_eager")
        compiled(leaf).sum().backward()
        assert not enters(op, x)
        torch.compiler.reset()
        class Module(torch.nn.Module):
            def forward(self, x): return op(x)
        exported = torch.export.export(Module(), (x,), strict=True)
        give([compiled(x).tolist(), leaf.grad.tolist(), exported.module()(x).tolist()])
        """,
    )
    assert given == [[2, 2, 2]] * 3


GRADIENTS = {
    "what a function mode makes of a call": """
        class Times(torch.overrides.TorchFunctionMode):
            def __torch_function__(self, function, types, args=(), kwargs=None):
                is_op = function is in_torch.default
                return leaf * 2 if is_op else function(*args, **(kwargs or {}))
        with Times():
            op(x).sum().backward()
        """,
    **{
        f"what a subclass makes of {call}": f"""
            class Times(Tensor):
                @classmethod
                def __torch_function__(cls, function, types, args=(), kwargs=None):
                    return leaf * 2
            wrapped = x.as_subclass(Times)
            {call}.sum().backward()
            """
        for call in ("op(wrapped)", "op(x, weight=wrapped)")
    },
    "what a dispatch mode makes of a call": """
        from torch.overrides import enable_reentrant_dispatch
        from torch.utils._python_dispatch import TorchDispatchMode
        class Times(TorchDispatchMode):
            def __torch_dispatch__(self, function, types, args=(), kwargs=None):
                if function is not in_torch.default:
                    return function(*args, **(kwargs or {}))
                with enable_reentrant_dispatch():
                    return leaf * 2
        with Times():
            result = op(x)
        result.sum().backward()
        """,
    "what a wrapper makes of a call": """
        from torch.overrides import enable_reentrant_dispatch
        class Wrapper(Tensor):
            __torch_function__ = torch._C._disabled_torch_function_impl
            @staticmethod
            def __new__(cls, inner):
                made = Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)
                made.inner = inner
                return made
            @classmethod
            def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
                with enable_reentrant_dispatch():
                    return cls(function(*(each.inner for each in args), **(kwargs or {})))
        op(Wrapper(leaf)).inner.sum().backward()
        """,
    # Inside, a tensor says that it requires no grad.
    **{
        f"calls of {vmap}": f"""
            import warnings
            warnings.simplefilter("ignore")
            import torch._vmap_internals
            leaf = torch.ones(2, 3, requires_grad=True)
            {vmap}(op)(leaf).sum().backward()
            """
        for vmap in ("torch.vmap", "torch._vmap_internals._vmap")
    },
}


@pytest.mark.parametrize("code", GRADIENTS.values(), ids=GRADIENTS)
def test_gradients_reach_the_leaf_through(plugin: Site, code: str) -> None:
    assert plugin.run(ENTERED, code, "give(leaf.grad.unique().tolist())") == [2]


def test_a_torch_of_other_private_parts_has_gradients(plugin: Site) -> None:
    given = plugin.run(
        "import torch; del torch._C._dispatch_key_parse",
        ENTERED,
        """
        op(leaf).sum().backward()
        give([enters(op, x), leaf.grad.tolist()])
        """,
    )
    assert given == [True, [2, 2, 2]]
