"""Kernels that are Python functions, of plugins with a library and without one."""

import pytest
from loading import failure_of
from plugin_factory import Site

KERNELS = """
import torch
from custom_pypto_plugin import Autograd, hookimpl

def first(x): return x + 1
def fake(x): return torch.empty_like(x)

@hookimpl
def custom_pypto_kernels(): return {"first.twice": {"CPU": first}}
@hookimpl
def custom_pypto_fakes(): return {"first.twice": fake}
@hookimpl
def custom_pypto_autograd(): return {"first.twice": Autograd(lambda ctx, grad: 2 * grad)}
"""


def hook(
    kernel: str, *, op: str = "first", key: str = "CPU", fake: str = "", functions: str = ""
) -> str:
    """A module with a kernel of an op for a dispatch key, and its fake kernel if one is given."""
    fakes = f"@hookimpl\ndef custom_pypto_fakes(): return {{{op!r}: {fake}}}" if fake else ""
    return f"""
import torch
from custom_pypto_plugin import hookimpl
{functions}
@hookimpl
def custom_pypto_kernels(): return {{{op!r}: {{{key!r}: {kernel}}}}}
{fakes}
"""


def test_plugin_without_a_library_works(site: Site) -> None:
    installed = site.install("first", KERNELS, ops=["first.twice"], with_library=False)
    assert site.load("""
        x = torch.ones(2, requires_grad=True)
        y = ops.first.twice(x)
        y.sum().backward()
        (plugin,) = core.plugins()
        [
            y.tolist(),
            x.grad.tolist(),
            list(ops.first.twice(torch.ones(3, device="meta")).shape),
            [plugin.status, plugin.library, plugin.library_sha256, str(plugin.folder)],
            plugin.ops[0].dispatch_keys,
            [core.cpu_isa("first"), core.npu_kernels("first")],
        ]
        """) == [
        [2, 2],
        [2, 2],
        [3],
        ["loaded", None, "", str(installed.package)],
        ["CPU", "Meta", "Autograd"],
        [None, []],
    ]


def test_kernels_for_every_device_and_beside_those_of_a_library(site: Site) -> None:
    for_all = hook("lambda x: x + 1", key="CompositeExplicitAutograd")
    site.install("first", for_all, with_library=False)
    site.install("second", hook("lambda x: x + 1", op="second", key="PrivateUse1"))
    assert site.load("""
        one = torch.ones(1)
        [ops.first(one).item(), core.ops()[1].dispatch_keys, ops.second(one).item()]
        """) == [2, ["CPU", "PrivateUse1"], 1]


def test_kernel_that_the_library_has_already_is_refused(site: Site) -> None:
    site.install("first", hook("lambda x: x + 1"))
    assert failure_of(site, "first") == (
        "first: the plugin's library registers a CPU kernel already; give the op one of the two"
    )


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("Cpu", "did you mean 'CPU'?"),
        ("NPU", "did you mean 'PrivateUse1'?"),
        ("npu", "did you mean 'PrivateUse1'?"),
        ("Nothing like it", "there are CPU, CUDA, "),
    ],
)
def test_key_that_is_none_is_refused(site: Site, key: str, hint: str) -> None:
    site.install("first", hook("lambda x: x", key=key), with_library=False)
    assert failure_of(site, "first").startswith(
        f"first: {key!r} is no dispatch key for kernels; {hint}"
    )


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_none_for_a_tensor_is_refused(site: Site, device: str) -> None:
    schema = "first.overload(Tensor x, Tensor? maybe=None, *, Tensor y) -> Tensor"
    function = "lambda x, maybe=None, *, y: x + y"
    code = hook(function, op="first.overload", fake=function)
    site.install("first", code, ops=[schema], with_library=False)
    given = site.load(
        f"""
        def call(x, maybe, y):
            return refusal(lambda: ops.first.overload(x, maybe, y=y))
        x = torch.ones(4, device="{device}")
        calls = (x, None, x), (None, x, x), (x, x, None), (None, None, None)
        [ops.first.overload(x, None, y=x).shape, [call(*each) for each in calls]]
        """
    )
    refused = "first.overload: argument '{}' must be a tensor, got None".format
    assert given == [[4], [None, refused("x"), refused("y"), refused("x")]]


# What an op returns by its schema, what its kernels return, and the error's text.
WRONG_RESULTS = [
    ("Tensor", "None", "returns None, but the schema says Tensor; is a `return` missing?"),
    ("(Tensor, Tensor)", "None", "returns None, but the schema says Tensor; is a"),
    ("(Tensor, Tensor)", "(x + 1, None)", "returns None as result 1, but the schema says"),
    ("(Tensor, Tensor)", "x + 1", "returns one result, but the schema says 2; return them as"),
    ("(Tensor, Tensor)", "(x + 1, 1.0)", "returns a float as result 1, but the schema says"),
    ("Tensor", "(x + 1, x + 2)", "returns a tuple, but the schema says Tensor"),
]


def test_wrong_results(site: Site) -> None:
    for number, (returns, value, _) in enumerate(WRONG_RESULTS):
        code = hook(f"lambda x: {value}", op=f"op_{number}", fake=f"lambda x: {value}")
        schema = f"op_{number}(Tensor x) -> {returns}"
        site.install(f"op_{number}", code, ops=[schema], with_library=False)
    given = site.load(f"""
        called = [getattr(ops, f"op_{{number}}") for number in range({len(WRONG_RESULTS)})]
        [[refusal(op, torch.ones(2, device=each)) for each in ("cpu", "meta")] for op in called]
        """)
    for number, (texts, (_, _, fault)) in enumerate(zip(given, WRONG_RESULTS, strict=True)):
        for what, text in zip(("kernel", "fake kernel"), texts, strict=True):
            assert text.startswith(f"op_{number}: its {what} {fault}")


def test_none_is_a_result_where_the_schema_has_none(site: Site) -> None:
    code = hook("lambda x: None")
    site.install("first", code, ops=["first(Tensor(a!) x) -> ()"], with_library=False)
    assert site.load("ops.first(torch.ones(1))") is None


WRITES = """
def write(x, others, maybe=None):
    for each in (x, *others, *([] if maybe is None else [maybe])):
        each.detach().numpy()[:] = 7  # what autograd does not see
"""
MUTATING = "first(Tensor(a!) x, Tensor(b!)[] others, Tensor(c!)? maybe=None) -> ()"


def test_versions_of_what_is_written_to_are_bumped(site: Site) -> None:
    """What may not be written to: test_mutation.py."""
    site.install("first", hook("write", functions=WRITES), ops=[MUTATING], with_library=False)
    assert site.load("""
        tensors = [torch.ones(2) for _ in range(4)]
        ops.first(tensors[0], tensors[1:3], tensors[3])
        ops.first(tensors[0], tensors[1:3])
        [[each._version for each in tensors], [each[0].item() for each in tensors]]
        """) == [[2, 2, 2, 1], [7, 7, 7, 7]]


def test_what_a_composite_kernel_is_given_is_left_to_the_ops_that_it_calls(site: Site) -> None:
    code = hook("write", key="CompositeImplicitAutograd", functions=WRITES)
    site.install("first", code, ops=[MUTATING], with_library=False)
    assert site.load("x = torch.ones(4); refusal(ops.first, x, [x[1:]])") is None


WRONG = ["y, x", "x", "x, k", "x, *, k=3", "x, k=3, m=1", "x, k=2", "x, k=None", "x, k=1.0"]


@pytest.mark.parametrize("arguments", WRONG)
@pytest.mark.parametrize("what", ["kernel", "fake"])
def test_function_with_other_arguments_is_refused(site: Site, arguments: str, what: str) -> None:
    right = "lambda x, k=3: x"
    code = hook(**{"kernel": right, "fake": right, what: f"lambda {arguments}: x"})
    site.install("first", code, ops=["first(Tensor x, int k=3) -> Tensor"], with_library=False)
    name = "the CPU kernel" if what == "kernel" else "the fake kernel"
    assert failure_of(site, "first").startswith(
        f"first: {name} must take the arguments of the schema, custom_pypto::first(Tensor x, int"
        " k=3) -> Tensor, by their names and with its defaults, but it is <lambda>("
    )


def test_defaults_are_compared_as_torch_reads_them(site: Site) -> None:
    schema = "first(Tensor x, float a=1, int[2] b=3, int[] c=[1, 2], int[] d=[]) -> Tensor"
    right = "lambda x, a=1, b=3, c=(1, 2), d=(): x + a"
    site.install("first", hook(right, fake=right), ops=[schema], with_library=False)
    assert site.load("ops.first(torch.ones(1)).item()") == 2


def test_schema_that_torch_refuses(site: Site) -> None:
    site.install("first", ops=["first(Tonsor x) -> Tensor"], with_library=False)
    assert failure_of(site, "first").startswith("first: torch refused the schema: ")
