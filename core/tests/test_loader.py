"""Loading, in a Python of its own for each case: what loads, what does not, what is reported."""

from __future__ import annotations

import hashlib
import shutil

import pytest
from custom_pypto_discovery.environment import ALLOW, DISABLE, STRICT
from plugin_factory import Site

REPORT = """
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import custom_pypto.core as core
give({
    "warnings": [[w.category.__name__, str(w.message), w.filename] for w in caught],
    "reasons": {p.name: p.reason for p in core.plugins()},
    "states": {p.name: p.status for p in core.plugins()},
    "ops": [op.name for op in core.ops()],
})
"""
HOOKS = """
from custom_pypto_plugin import Autograd, Reference, SampleInput, hookimpl
import torch
def fake(x): return torch.empty_like(x)
"""


def failure_of(site: Site, name: str = "broken", status: str = "failed") -> str:
    """Load what is installed, and return why `name` is not loaded while all others work."""
    site.install("healthy")
    report = site.run(REPORT)
    states = report["states"]
    assert states.pop(name) == status
    assert set(states.values()) == {"loaded"}
    assert not any(op.startswith(name) for op in report["ops"])
    ((category, message, _),) = report["warnings"]
    assert category == f"Plugin{status.capitalize()}Warning"
    reason: str = report["reasons"][name]
    verb = "failed" if status == "failed" else f"is {status}"
    assert message == f"the plugin {name!r} (custom-pypto-{name} 0.1.0) {verb}: {reason}"
    return reason


def test_every_installed_plugin_is_loaded_and_its_ops_work(site: Site) -> None:
    site.install("first", ops=["one", "two.overload"])
    site.install("second")
    given = site.run(
        """
        import torch, custom_pypto.core as core
        give([
            [p.name for p in core.plugins() if p.status == "loaded"],
            [op.name for op in core.ops()],
            torch.ops.custom_pypto.one(torch.ones(2)).tolist(),
            torch.ops.custom_pypto.two.overload(torch.ones(2)).tolist(),
        ])
        """
    )
    assert given == [["first", "second"], ["one", "second", "two.overload"], [1, 1], [1, 1]]


def test_importing_the_package_imports_core(site: Site) -> None:
    site.install("first")
    assert site.run("import custom_pypto, torch; give(hasattr(torch.ops.custom_pypto, 'first'))")


def test_no_plugin_at_all_is_no_error(site: Site) -> None:
    assert site.run("import custom_pypto.core as core; give([core.plugins(), core.ops()])") == [
        [],
        [],
    ]


def test_plugins_load_by_name_after_those_they_require(site: Site) -> None:
    site.install("ant", requires_ops=["zebra"])
    site.install("zebra")
    site.install("cat")
    code = "import custom_pypto.core as core; give([p.name for p in core.plugins()])"
    assert site.run(code) == ["cat", "zebra", "ant"]


def test_plugins_that_do_not_load_come_last_and_by_name(site: Site) -> None:
    site.install("ant", "raise ValueError")
    site.install("bee")
    site.install("asp").forge(core_abi=[9, 0])
    code = """
        import warnings
        warnings.simplefilter("ignore")
        import custom_pypto.core as core
        give([p.name for p in core.plugins()])
    """
    assert site.run(code) == ["bee", "ant", "asp"]


# Records


def test_record_of_a_loaded_plugin(site: Site) -> None:
    installed = site.install("first", version="1.2.3", code=HOOKS + FAKES)
    given = site.run(
        """
        import custom_pypto.core as core
        (plugin,) = core.plugins()
        (op,) = plugin.ops
        give([
            [plugin.name, plugin.version, plugin.distribution, plugin.status, plugin.reason],
            [str(plugin.library), plugin.opp, plugin.load_time > 0],
            [op.name, op.schema, op.plugin, op.dispatch_keys],
            [core.ops() == (op,)],
        ])
        """
    )
    assert given == [
        ["first", "1.2.3", "custom-pypto-first", "loaded", ""],
        [str(installed.library), None, True],
        ["first", "first(Tensor x) -> Tensor", "first", ["CPU", "Meta"]],
        [True],
    ]


FAKES = """
@hookimpl
def custom_pypto_fakes(): return {"first": fake}
"""


def test_record_of_a_plugin_that_is_not_loaded(site: Site) -> None:
    site.install("first")
    given = site.run(
        """
        import custom_pypto.core as core
        (plugin,) = core.plugins()
        give([plugin.status, plugin.load_time, plugin.ops[0].dispatch_keys, core.ops()])
        """,
        **{DISABLE: "first"},
    )
    assert given == ["blocked", 0.0, [], []]


def test_opp_folder_is_in_the_record(site: Site) -> None:
    installed = site.install("first")
    installed.forge(opp="opp")
    code = "import custom_pypto.core as core; give(str(core.plugins()[0].opp))"
    assert site.run(code) == str(installed.package / "opp")


def test_overload_can_have_a_fake_and_a_derivative(site: Site) -> None:
    site.install(
        "first",
        HOOKS
        + """
@hookimpl
def custom_pypto_fakes(): return {"two.overload": fake}
@hookimpl
def custom_pypto_autograd(): return {"two.overload": Autograd(lambda ctx, grad: 3 * grad)}
""",
        ops=["two.overload"],
    )
    given = site.run(
        """
        import torch, custom_pypto.core as core
        x = torch.ones(1, requires_grad=True)
        torch.ops.custom_pypto.two.overload(x).sum().backward()
        shape = torch.ops.custom_pypto.two.overload(torch.ones(4, device="meta")).shape
        give([core.ops()[0].dispatch_keys, x.grad.item(), list(shape)])
        """
    )
    assert given == [["CPU", "Meta", "Autograd"], 3, [4]]


def test_fake_refuses_none_where_the_schema_says_tensor(site: Site) -> None:
    site.install(
        "first",
        """
        from custom_pypto_plugin import hookimpl
        @hookimpl
        def custom_pypto_fakes(): return {"two.overload": lambda x, maybe=None, *, y: x + y}
        """,
        ops=["two.overload(Tensor x, Tensor? maybe=None, *, Tensor y) -> Tensor"],
    )
    given = site.run(
        """
        import torch, custom_pypto.core
        from torch._subclasses.fake_tensor import FakeTensorMode
        def call(x, maybe, y):
            try:
                return list(torch.ops.custom_pypto.two.overload(x, maybe, y=y).shape)
            except RuntimeError as error:
                return str(error)
        with FakeTensorMode():
            x = torch.ones(4)
            give([call(x, None, x), call(None, x, x), call(x, x, None), call(None, None, None)])
        """
    )
    refused = "two.overload: argument '{}' must be a tensor, got None".format
    assert given == [[4], refused("x"), refused("y"), refused("x")]


SECOND = "-second(Tensor x) -> Tensor"
QUIET_REPORT = REPORT.replace('simplefilter("always")', 'simplefilter("ignore")')

# Plugins that fail, one way each


def test_plugin_whose_files_do_not_fit_is_rejected(site: Site) -> None:
    site.install("broken").forge(core_abi=[9, 0])
    assert failure_of(site, status="rejected").startswith(
        "requires core ABI 9.0, but custom-pypto-core "
    )


def test_module_that_cannot_be_imported(site: Site) -> None:
    installed = site.install("broken", "import nothing_that_exists")
    assert failure_of(site) == (
        "importing its module 'custom_pypto_broken' failed: ModuleNotFoundError: No module named"
        f" 'nothing_that_exists' ({installed.package / '__init__.py'}, line 1)"
    )


@pytest.mark.parametrize(
    ("code", "what"),
    [
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("raise GeneratorExit", "GeneratorExit"),
        ("raise type('Odd', (BaseException,), {})('text')", "Odd: text"),
        ("no python", "SyntaxError: invalid syntax"),
    ],
)
def test_module_that_raises_what_is_no_exception(site: Site, code: str, what: str) -> None:
    site.install("broken", code)
    assert f"importing its module 'custom_pypto_broken' failed: {what} (" in failure_of(site)


def test_keyboard_interrupt_ends_loading_and_leaves_nothing_behind(site: Site) -> None:
    site.install("a_healthy")
    site.install("broken", "raise KeyboardInterrupt")
    given = site.run(
        """
        import torch
        try: import custom_pypto.core
        except KeyboardInterrupt: pass
        give(torch._C._get_operation_overload("custom_pypto::a_healthy", "") is None)
        """
    )
    assert given


def test_import_can_be_tried_again_after_it_was_interrupted(site: Site) -> None:
    site.install("a_healthy")
    site.install(
        "broken",
        """
        import builtins
        if not hasattr(builtins, "tried"):
            builtins.tried = True
            raise KeyboardInterrupt
        """,
    )
    given = site.run(
        """
        try: import custom_pypto.core
        except KeyboardInterrupt: pass
        import custom_pypto.core as core
        give([p.status for p in core.plugins()])
        """
    )
    assert given == ["loaded", "loaded"]


def test_library_that_the_dynamic_linker_refuses(site: Site) -> None:
    installed = site.install("broken")
    contents = b"not an ELF file"
    installed.library.write_bytes(contents)
    sha256 = hashlib.sha256(contents).hexdigest()
    installed.forge(library={"path": "lib/libcustom_pypto_broken.so", "sha256": sha256})
    assert failure_of(site).startswith(
        f"the library cannot be opened: {installed.library}: file too short"
    )


def test_registration_that_fails_gives_the_librarys_reason(site: Site) -> None:
    site.install("broken", registers="!argument 2 'k' is int in the schema")
    assert failure_of(site) == "registering its ops failed: argument 2 'k' is int in the schema"


def test_registration_that_torch_refuses_gives_its_reason(site: Site) -> None:
    site.install("broken", registers="broken(Tonsor x) -> Tensor")
    assert "Tonsor" in failure_of(site)


def test_library_that_does_not_register_what_the_manifest_lists(site: Site) -> None:
    site.install("broken", registers="other_op(Tensor x) -> Tensor")
    assert failure_of(site) == (
        "its manifest lists the op 'broken', but its library does not register it; build the plugin"
        " again"
    )


def test_library_that_registers_another_schema_than_the_manifest_lists(site: Site) -> None:
    site.install("broken", registers="broken(Tensor y) -> Tensor")
    assert failure_of(site) == (
        "its library registers custom_pypto::broken(Tensor y) -> Tensor, but its manifest says"
        " custom_pypto::broken(Tensor x) -> Tensor; build the plugin again"
    )


UNDECLARED = """
from custom_pypto.core.loader import start
give(start().undeclared())
"""


def test_library_that_registers_more_than_the_manifest_lists_is_found(site: Site) -> None:
    site.install("first", registers="first(Tensor x) -> Tensor\nother_op(Tensor x) -> Tensor")
    site.install("second")
    assert site.run(UNDECLARED) == {"other_op": ["first"]}


def test_op_that_no_plugin_registered_disturbs_none(site: Site) -> None:
    site.install("first")
    given = site.run(
        """
        import torch
        library = torch.library.Library("custom_pypto", "FRAGMENT")
        library.define("foreign(Tensor x) -> Tensor")
        """,
        REPORT,
    )
    assert given["states"] == {"first": "loaded"}


def test_library_that_replaces_the_kernel_of_another_plugin(site: Site) -> None:
    site.install("ant")
    site.install("broken", registers="broken(Tensor x) -> Tensor\n+ant(Tensor x) -> Tensor")
    # torch warns of it too, where another kernel was there.
    report = site.run("import warnings; warnings.simplefilter('ignore')", QUIET_REPORT)
    assert report["states"] == {"ant": "loaded", "broken": "failed"}
    assert report["reasons"]["broken"] == (
        "it registers a CPU kernel for custom_pypto::ant, which is an op of another plugin and may"
        " give wrong results in this process from now on; uninstall one of the two"
    )


# Ops without a kernel


def test_op_without_a_kernel_says_so_at_the_call_and_in_the_record(site: Site) -> None:
    site.install("first", ops=["first", "second"], registers=f"first(Tensor x) -> Tensor\n{SECOND}")
    given = site.run(
        """
        import torch, custom_pypto.core as core
        try: torch.ops.custom_pypto.second(torch.ones(1))
        except RuntimeError as error: reason = str(error)
        one = torch.ops.custom_pypto.first(torch.ones(1)).item()
        give([reason, one, {op.name: op.dispatch_keys for op in core.ops()}])
        """
    )
    assert given == [
        (
            "second has no kernel for any device: its plugin registers none, the plugin 'first'"
            " (custom-pypto-first 0.1.0); upgrade the plugin: pip install --upgrade"
            " custom-pypto-first; its author registers kernels in C++ or by the hook"
            " custom_pypto_kernels"
        ),
        1,
        {"first": ["CPU"], "second": []},
    ]


def test_op_without_a_kernel_can_be_given_one_by_somebody_else(site: Site) -> None:
    site.install("second", registers=SECOND)
    given = site.run(
        """
        import torch, custom_pypto.core
        torch.library.impl("custom_pypto::second", "CPU", lambda x: x + 1)
        give(torch.ops.custom_pypto.second(torch.ones(1)).item())
        """
    )
    assert given == 2


def test_op_that_somebody_else_has_registered(site: Site) -> None:
    site.install("broken")
    given = site.run(
        """
        import torch
        library = torch.library.Library("custom_pypto", "FRAGMENT")
        library.define("broken(Tensor x) -> Tensor")
        """,
        REPORT,
    )
    assert given["reasons"]["broken"].startswith(
        "custom_pypto::broken is registered in this process already, by something that is no plugin"
    )


def test_hook_that_raises(site: Site) -> None:
    installed = site.install(
        "broken",
        """
        from custom_pypto_plugin import hookimpl
        @hookimpl
        def custom_pypto_fakes(): raise SystemExit("over")
        """,
    )
    assert failure_of(site) == (
        f"custom_pypto_fakes raised SystemExit: over ({installed.package / '__init__.py'}, line 4)"
    )


def test_derivative_that_torch_refuses(site: Site) -> None:
    site.install(
        "broken",
        HOOKS
        + """
@hookimpl
def custom_pypto_autograd(): return {"broken": Autograd(fake)}
""",
        ops=["broken(Tensor(a!) x) -> Tensor"],
    )
    assert failure_of(site).startswith("broken: torch refused the derivative: Cannot register")


def test_everything_of_a_failed_plugin_is_taken_back(site: Site) -> None:
    site.install(
        "broken",
        HOOKS
        + """
@hookimpl
def custom_pypto_fakes(): return {"one": fake, "two": fake}
@hookimpl
def custom_pypto_autograd(): return {"one": Autograd(fake), "two": None}
""",
        ops=["one", "two"],
    )
    given = site.run(
        """
        import torch, warnings
        warnings.simplefilter("ignore")
        import custom_pypto.core
        give([
            hasattr(torch.ops.custom_pypto, "one"),
            "custom_pypto::one" in torch._C._dispatch_get_all_op_names(),
            torch._library.simple_registry.singleton.find("custom_pypto::one").fake_impl.kernel,
        ])
        """
    )
    assert given == [False, False, None]


def test_plugin_that_requires_a_failed_plugin_fails_with_it(site: Site) -> None:
    site.install("base", "raise LookupError('no')")
    site.install("user", requires_ops=["base"])
    report = site.run(REPORT)
    assert report["reasons"]["user"].startswith(
        "requires the op 'base' of the plugin 'base', which failed: importing its module"
    )
    assert len(report["warnings"]) == 2


def test_module_that_hides_the_plugins(site: Site) -> None:
    site.install("broken")
    given = site.run(
        """
        import sys, types, importlib.util
        spec = importlib.util.find_spec("custom_pypto_broken")
        impostor = types.ModuleType("custom_pypto_broken")
        impostor.__spec__ = spec
        sys.modules["custom_pypto_broken"] = impostor
        """,
        REPORT,
    )
    assert given["reasons"]["broken"].startswith(
        "another module called 'custom_pypto_broken', <module 'custom_pypto_broken'"
    )


# What the user reads


def test_warning_points_to_the_line_that_imports_core(site: Site) -> None:
    site.install("broken", "raise ValueError")
    (site.folder / "program.py").write_text("import custom_pypto.core", encoding="utf-8")
    given = site.run(
        """
        import warnings
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            import program
        give([[w.filename, w.lineno] for w in caught])
        """
    )
    assert given == [[str(site.folder / "program.py"), 1]]


HOSTILE_VERSION = "0.1.0\x1b[2K\u202e"


def test_warning_cannot_act_on_the_terminal(site: Site) -> None:
    site.install("broken", "raise RuntimeError('\\x1b[31m\\r')", version=HOSTILE_VERSION)
    ((_, message, _),) = site.run(REPORT)["warnings"]
    assert message.isprintable()
    assert r"0.1.0\x1b[2K\u202e" in message
    assert r"RuntimeError: \x1b[31m\r" in message


def test_error_of_strict_mode_cannot_act_on_the_terminal(site: Site) -> None:
    site.install("broken", "raise RuntimeError('\\x1b[31m')", version=HOSTILE_VERSION)
    done = site.start("import custom_pypto.core", CUSTOM_PYPTO_STRICT="1")
    assert r"0.1.0\x1b[2K\u202e" in done.stderr.splitlines()[-1]
    assert "\x1b" not in done.stderr


def test_error_about_an_op_cannot_act_on_the_terminal(site: Site) -> None:
    site.install("broken", "raise RuntimeError('\\x1b[31m')", version=HOSTILE_VERSION)
    reported = site.run(
        """
        import warnings
        warnings.simplefilter("ignore")
        import torch, custom_pypto.core
        try:
            torch.ops.custom_pypto.broken
        except AttributeError as error:
            give(str(error))
        """
    )
    assert reported.isprintable()
    assert r"RuntimeError: \x1b[31m" in reported


def test_long_text_of_an_exception_is_shortened(site: Site) -> None:
    site.install("broken", "raise RuntimeError('x' * 1_000_000 + 'the end')")
    reason = failure_of(site)
    assert "RuntimeError: xxx" in reason
    assert "the end (" in reason
    assert len(reason) < 5000


def test_plugin_loads_in_spite_of_metadata_left_over_of_another_version(site: Site) -> None:
    plugin = site.install("healthy")
    for version in ("0.0.9", "0.2.0"):
        leftover = site.folder / f"custom_pypto_healthy-{version}.dist-info"
        shutil.copytree(plugin.dist_info, leftover)
        (leftover / "METADATA").write_text(f"Name: custom-pypto-healthy\nVersion: {version}\n")
    report = site.run(REPORT)
    assert report["states"] == {"healthy": "loaded"}
    assert report["warnings"] == []


def test_steps_are_logged(site: Site) -> None:
    site.install("first")
    given = site.run(
        """
        import logging
        class Keep(logging.Handler):
            def emit(self, record): messages.append(record.getMessage())
        messages = []
        logging.getLogger("custom_pypto").addHandler(Keep())
        logging.getLogger("custom_pypto").setLevel(logging.DEBUG)
        import custom_pypto.core
        give([message.split(" ")[:2] for message in messages])
        """
    )
    assert given == [["first:", "opening"], ["first:", "importing"], ["first:", "loaded"]]


def test_nothing_is_printed(site: Site) -> None:
    site.install("first")
    site.install("broken", "raise ValueError")
    done = site.start("import warnings; warnings.simplefilter('ignore'); import custom_pypto.core")
    assert (done.stdout, done.stderr) == ("", "")


# The environment


def test_allow_list_loads_only_what_it_names(site: Site) -> None:
    site.install("first")
    site.install("second", "raise ValueError")
    report = site.run(REPORT, **{ALLOW: "first"})
    assert report["states"] == {"first": "loaded", "second": "blocked"}
    assert report["warnings"] == []


def test_unknown_name_in_a_list_gives_one_warning(site: Site) -> None:
    site.install("first")
    report = site.run(REPORT, **{DISABLE: "furst"})
    ((category, message, _),) = report["warnings"]
    assert category == "PluginWarning"
    assert "'furst' (did you mean 'first'?)" in message


def test_strict_makes_the_import_fail_and_names_every_failure(site: Site) -> None:
    for name in ("broken", "worse"):
        site.install(name, f"raise ValueError({name!r})")
    done = site.start("import custom_pypto.core", **{STRICT: "1"})
    assert done.returncode == 1
    assert "PluginError: CUSTOM_PYPTO_STRICT is set, and 2 of the installed plugins" in done.stderr
    assert "the plugin 'worse' (custom-pypto-worse 0.1.0) failed" in done.stderr


def test_strict_leaves_nothing_loaded(site: Site) -> None:
    site.install("healthy")
    site.install("broken", "raise ValueError")
    given = site.run(
        """
        import torch
        try: import custom_pypto.core
        except RuntimeError: pass
        give(hasattr(torch.ops.custom_pypto, "healthy"))
        """,
        **{STRICT: "1"},
    )
    assert not given


def test_warnings_that_are_errors_make_the_import_fail_and_leave_nothing_loaded(site: Site) -> None:
    site.install("healthy")
    site.install("broken", "raise ValueError")
    given = site.run(
        """
        import torch, warnings
        warnings.simplefilter("error")
        try: import custom_pypto.core
        except UserWarning as warning: raised = type(warning).__name__
        give([raised, hasattr(torch.ops.custom_pypto, "healthy")])
        """
    )
    assert given == ["PluginFailedWarning", False]


def test_strict_does_not_mind_blocked_plugins_and_what_requires_them(site: Site) -> None:
    site.install("broken", "raise ValueError")
    site.install("user", requires_ops=["broken"])
    report = site.run(REPORT, **{STRICT: "1", DISABLE: "broken"})
    assert report["states"] == {"broken": "blocked", "user": "blocked"}
    assert report["reasons"]["user"].startswith(
        "requires the op 'broken' of the plugin 'broken', which is blocked: CUSTOM_PYPTO_DISABLE"
    )


def test_of_two_plugins_with_one_op_the_user_chooses(site: Site) -> None:
    site.install("one", ops=["same"])
    site.install("two", ops=["same"])
    assert site.run(REPORT)["states"] == {"one": "rejected", "two": "rejected"}
    assert site.run(REPORT, **{DISABLE: "one"})["states"] == {"two": "loaded", "one": "blocked"}


# Samples and references


def test_samples_and_reference_come_from_the_plugin(site: Site) -> None:
    site.install(
        "first",
        HOOKS
        + """
@hookimpl
def custom_pypto_samples(): return {"first": lambda device: [SampleInput((device,), name="one")]}
@hookimpl
def custom_pypto_references(): return {"first": Reference(abs)}
""",
    )
    given = site.run(
        """
        import custom_pypto.core as core
        (sample,) = core.samples("first", "cpu")
        give([sample.args, sample.name, core.reference("first").function(-2)])
        """
    )
    assert given == [["cpu"], "one", 2]


def test_plugin_without_samples_and_reference_gives_none(site: Site) -> None:
    site.install("first")
    code = "import custom_pypto.core as c; give([c.samples('first'), c.reference('first')])"
    assert site.run(code) == [[], None]


def test_samples_of_an_unknown_op_say_what_is_installed(site: Site) -> None:
    done = site.start("import custom_pypto.core as core; core.samples('nothing')")
    assert "LookupError: torch.ops.custom_pypto has no op 'nothing'" in done.stderr


def test_hook_for_samples_that_fails_is_a_plugin_error(site: Site) -> None:
    site.install(
        "first",
        HOOKS
        + """
@hookimpl
def custom_pypto_samples(): return {"furst": list}
""",
    )
    done = site.start("import custom_pypto.core as core; core.samples('first')")
    assert (
        "PluginError: the plugin 'first' (custom-pypto-first 0.1.0): custom_pypto_samples names"
        " 'furst', which is no op of this plugin; did you mean 'first'? its ops are 'first'"
    ) in done.stderr


# Processes


def test_forked_process_can_use_and_load(site: Site) -> None:
    site.install("first")
    given = site.run(
        """
        import os, sys, torch, custom_pypto.core as core
        child = os.fork()
        if child == 0:
            result = torch.ops.custom_pypto.first(torch.ones(1)).item()
            os._exit(int(result) if core.ops() else 9)
        give(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """
    )
    assert given == 1


def test_plugin_may_fork_while_it_is_loaded(site: Site) -> None:
    site.install("first", "import os; child = os.fork()")
    given = site.start(
        """
        import os, sys, custom_pypto.core as core, custom_pypto_first
        if custom_pypto_first.child == 0:
            os._exit(0 if core.plugins()[0].status == "loaded" else 9)
        give(os.waitstatus_to_exitcode(os.waitpid(custom_pypto_first.child, 0)[1]))
        """
    )
    assert (given.stdout, given.stderr) == ("0\n", "")


def test_reload_of_core_loads_nothing_twice(site: Site) -> None:
    site.install("first")
    given = site.run(
        """
        import importlib, custom_pypto.core as core
        importlib.reload(core)
        give([p.status for p in core.plugins()])
        """
    )
    assert given == ["loaded"]
