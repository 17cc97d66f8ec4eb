"""A fork while another thread loads plugins, or uses an op first, neither hangs nor loses an op."""

import pytest
from loading import FAKES
from plugin_factory import Site

# A thread is held in the middle of what the test names; then the process forks, lets it go on, and
# its child does the same as the thread and more. Only the fork's own wait can let the thread end.
FORK = """
import builtins, faulthandler, os, signal, sys, threading
held, forking = threading.Event(), threading.Event()
def hold(*_):
    if threading.current_thread() is not threading.main_thread():
        held.set()
        assert forking.wait(60)
import custom_pypto_contract.fork_locks
# What is registered last is called first.
os.register_at_fork(before=forking.set)

def everything():
    import custom_pypto.core as core, torch
    from custom_pypto_plugin.op_functions import op_function
    ops = torch.ops.custom_pypto
    one = torch.ones(1)
    @op_function("first")
    def first(x): ...
    try: ops.firts
    except AttributeError as error: absent = "first" in str(error)
    core.load_new()
    return [ops.first(one).item(), first(one).item(), "Tensor x" in ops.first.__doc__, absent,
            core.contract("first").name, ops.first(one.to("meta")).device.type,
            [str(each.status) for each in core.plugins()]]

def fork_while(work):
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    assert held.wait(60)
    child = os.fork()
    if child == 0:
        faulthandler.dump_traceback_later(60, exit=True)
        # Its first thread owns locks that were held during the fork, and so never waits for them.
        other = threading.Thread(target=lambda: os._exit(0 if everything() == EXPECTED else 9))
        other.start()
        other.join()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    thread.join(60)
    assert not thread.is_alive()
    give([status, everything() == EXPECTED])
EXPECTED = [1, 1, True, True, "first", "meta", ["loaded"]]
"""
# Where a thread is held: a module that is imported, by the name that Python looks for it by.
HELD_IN_AN_IMPORT = """
class Holder:
    def find_spec(self, name, path=None, target=None):
        if name == {!r}:
            hold()
sys.meta_path.insert(0, Holder())
"""
FIRST_USES = {
    "custom_pypto_contract.contract_data": "torch.ops.custom_pypto.first",
    "custom_pypto_contract.description": "torch.ops.custom_pypto.first",
    "custom_pypto.core.contracts.evaluation": "core.contract('first')",
    "difflib": "getattr(torch.ops.custom_pypto, 'firts', None)",
}


@pytest.mark.parametrize("module", FIRST_USES)
def test_fork_during_a_first_use(site: Site, module: str) -> None:
    site.install("first", FAKES)
    given = site.run(
        FORK,
        HELD_IN_AN_IMPORT.format(module),
        f"""
        import custom_pypto.core as core, torch
        sys.modules.pop("difflib", None)
        fork_while(lambda: {FIRST_USES[module]})
        """,
    )
    assert given == [0, True]


def test_fork_while_a_thread_imports_core(site: Site) -> None:
    site.install("first", "import __main__; __main__.hold()" + FAKES)
    assert site.run(FORK, "fork_while(lambda: __import__('custom_pypto.core'))") == [0, True]


def test_fork_while_a_thread_loads_a_new_plugin(site: Site) -> None:
    code = f"""
        import custom_pypto.core as core
        EXPECTED[-1] *= 2
        sys.path.append({str(site.folder / "later")!r})
        fork_while(core.load_new)
    """
    site.install("first", FAKES)
    site.other("later").install("second", "import __main__; __main__.hold()")
    assert site.run(FORK, code) == [0, True]


def test_a_fork_does_not_wait_for_ever_for_a_plugin_that_waits_for_it(site: Site) -> None:
    code = """
        import os, threading
        def fork():
            child = os.fork()
            if child == 0: os._exit(7)
            statuses.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        statuses = []
        thread = threading.Thread(target=fork)
        thread.start(); thread.join()
    """
    site.install("first", code)
    given = site.run(
        "from custom_pypto_contract import fork_locks; fork_locks.LIMIT_S = 0.1",
        "import custom_pypto_first, custom_pypto.core as core",
        "give([custom_pypto_first.statuses, str(core.plugins()[0].status)])",
    )
    assert given == [[7], "loaded"]


def test_plugin_may_load_nothing_in_a_fork_that_it_makes_while_it_is_loaded(site: Site) -> None:
    site.install("first", "import os; child = os.fork()" + FAKES)
    given = site.run(
        """
        import os, custom_pypto.core as core, custom_pypto_first, torch
        core.load_new()
        if custom_pypto_first.child == 0:
            os._exit(0 if torch.ops.custom_pypto.first(torch.ones(1)).item() == 1 else 9)
        give(os.waitstatus_to_exitcode(os.waitpid(custom_pypto_first.child, 0)[1]))
        """
    )
    assert given == 0
