"""custom_pypto_cli.isolated_load: which plugin ends the process that loads all of them."""

from collections.abc import Callable
from pathlib import Path

import pytest
from custom_pypto_cli import isolated_load, plugin_list, subprocess_call
from custom_pypto_cli.doctor import DoctorContext, plugins
from custom_pypto_cli.subprocess_call import Outcome
from custom_pypto_discovery.installed_plugin import InstalledPlugin, Status

CRASH = "crashed with SIGSEGV"
Calls = list[tuple[str | None, str]]
End = Callable[[set[str]], Outcome]


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Callable[[End], Calls]:
    """Give a way to say how loading given plugins ends; it gives the calls that are made."""
    for name in ("CUSTOM_PYPTO_PLUGINS", "CUSTOM_PYPTO_DISABLE"):
        monkeypatch.delenv(name, raising=False)
    installed = tuple(
        InstalledPlugin(name, name, f"acme-{name}", "1.0", Path("/site"), status=Status.ACCEPTED)
        for name in "abc"
    )
    monkeypatch.setattr(isolated_load.discovery, "discover", lambda settings: installed)

    def use(end: End) -> Calls:
        calls: Calls = []

        def call(function: object, *, time_limit: float, environment: dict[str, str]) -> Outcome:
            allowed = environment.get("CUSTOM_PYPTO_PLUGINS")
            calls.append((allowed, environment["CUSTOM_PYPTO_DISABLE"]))
            chosen = set("abc") if allowed is None else set(allowed.split(","))
            return end(chosen - set(environment["CUSTOM_PYPTO_DISABLE"].split(",")) - {""})

        monkeypatch.setattr(subprocess_call, "call", call)
        return calls

    return use


def load() -> tuple[Outcome, dict[str, Outcome]]:
    return isolated_load.load(plugin_list.load_all, time_limit=1.0)


def ends(culprits: str, progress: Callable[[set[str]], str], *, hangs: bool = False) -> End:
    """How a load ends with one of `culprits`; else its value is the names that it loaded."""

    def end(names: set[str]) -> Outcome:
        if names & set(culprits):
            return Outcome(failure=CRASH, progress=progress(names), timed_out=hangs)
        return Outcome(value=sorted(names))

    return end


# How loads end, the plugins that are left out, and what processes were started (allowed, blocked).
ENDS: dict[str, tuple[End, str, Calls | None]] = {
    "none": (ends("", str), "", [(None, "")]),
    "one while it loads": (ends("b", lambda names: "b"), "b", [(None, ""), ("a", ""), (None, "b")]),
    "one while another loads": (ends("a", lambda names: "b"), "a", None),
    "one after all have loaded": (ends("c", lambda names: ""), "c", None),
    "one that hangs": (ends("c", lambda names: "c", hangs=True), "c", [(None, ""), (None, "c")]),
    "one that hangs and reports another": (ends("b", lambda names: "a", hangs=True), "ab", None),
    "several": (ends("ab", lambda names: min(names & {"a", "b"})), "ab", None),
    "two together": (
        lambda names: Outcome(failure=CRASH) if {"a", "c"} <= names else Outcome(sorted(names)),
        "c",
        None,
    ),
}


@pytest.mark.parametrize(("end", "culprits", "calls"), ENDS.values(), ids=ENDS)
def test_plugins_that_end_the_process_are_left_out(
    world: Callable[[End], Calls], end: End, culprits: str, calls: Calls | None
) -> None:
    made = world(end)
    outcome, ended = load()
    assert outcome.value == sorted(set("abc") - set(culprits))
    assert {name: each.failure for name, each in ended.items()} == dict.fromkeys(culprits, CRASH)
    assert calls in (None, made)


def test_no_plugin_is_blamed_where_core_cannot_be_imported(world) -> None:
    calls = world(lambda names: Outcome(failure="ImportError: no torch"))
    assert load() == (Outcome(failure="ImportError: no torch"), {})
    assert len(calls) == 2
    (found,) = [check for check in plugins(DoctorContext(1.0)) if "import" in check.name]
    assert found.remark.endswith("failed, and no single plugin explains it: ImportError: no torch")


def test_the_doctor_says_what_to_leave_out(world: Callable[[End], Calls]) -> None:
    world(lambda names: Outcome(failure=CRASH, progress="b") if "b" in names else Outcome(value={}))
    core, *others = plugins(DoctorContext(1.0))
    assert core.value == "works only without b"
    assert core.advice.startswith("set CUSTOM_PYPTO_DISABLE=b")
    found = {check.name: check for check in others}
    assert found["b"].level == "problem"
    assert f"b failed: loading it ended the process: {CRASH}" in found["b"].remark


def test_a_variable_of_the_user_stays(world, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUSTOM_PYPTO_DISABLE", "a")
    calls = world(lambda names: Outcome(value=1))
    load()
    assert calls == [(None, "a")]
