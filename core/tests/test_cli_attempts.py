"""custom_pypto_cli.attempts: which plugin ends the process that loads all of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from custom_pypto_cli import attempts, child, records
from custom_pypto_cli.child import Outcome
from custom_pypto_cli.probes import plugins as probes
from custom_pypto_cli.probes.trial import Trial
from custom_pypto_discovery.installed_plugin import InstalledPlugin, Status

CRASH = "crashed with SIGSEGV"
Calls = list[tuple[str | None, str]]


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Calls]:
    """Give a way to say how loading given plugins ends; it gives the calls that are made."""
    for name in ("CUSTOM_PYPTO_PLUGINS", "CUSTOM_PYPTO_DISABLE"):
        monkeypatch.delenv(name, raising=False)
    installed = tuple(
        InstalledPlugin(name, name, f"acme-{name}", "1.0", Path("/site"), status=Status.ACCEPTED)
        for name in "abc"
    )
    monkeypatch.setattr(attempts.discovery, "discover", lambda settings: installed)

    def use(end: Callable[[set[str]], Outcome]) -> Calls:
        calls: Calls = []

        def call(function: object, *arguments: object, **options: object) -> Outcome:
            variables = options["environment"]
            assert isinstance(variables, dict)
            allowed, disabled = variables.get("CUSTOM_PYPTO_PLUGINS"), set()
            disabled = set(variables["CUSTOM_PYPTO_DISABLE"].split(","))
            calls.append((allowed, variables["CUSTOM_PYPTO_DISABLE"]))
            chosen = set("abc") if allowed is None else set(allowed.split(","))
            return end(chosen - disabled - {""})

        monkeypatch.setattr(child, "call", call)
        return calls

    return use


def load() -> tuple[Outcome, dict[str, Outcome]]:
    return attempts.load(records.load_plain, time_limit=1.0)


def test_one_attempt_is_enough_where_nothing_ends_the_process(world) -> None:
    calls = world(lambda names: Outcome(value=sorted(names)))
    assert load() == (Outcome(value=["a", "b", "c"]), {})
    assert calls == [(None, "")]


def test_the_plugin_that_was_loading_is_tried_alone_and_left_out(world) -> None:
    calls = world(
        lambda names: (
            Outcome(failure=CRASH, progress="b") if "b" in names else Outcome(value=sorted(names))
        )
    )
    outcome, ended = load()
    assert outcome.value == ["a", "c"]
    assert [(name, each.failure) for name, each in ended.items()] == [("b", CRASH)]
    assert calls == [(None, ""), ("b", ""), (None, "b")]


def test_a_plugin_that_ends_the_process_while_another_loads_is_found(world) -> None:
    world(lambda names: Outcome(failure=CRASH, progress="b") if "a" in names else Outcome(value=1))
    assert list(load()[1]) == ["a"]


def test_a_plugin_that_ends_the_process_after_all_have_loaded_is_found(world) -> None:
    world(lambda names: Outcome(failure=CRASH, progress="") if "c" in names else Outcome(value=1))
    assert list(load()[1]) == ["c"]


def test_a_plugin_that_hangs_is_not_waited_for_twice(world) -> None:
    calls = world(
        lambda names: (
            Outcome(failure="did not end", progress="c", timed_out=True)
            if "c" in names
            else Outcome(value=1)
        )
    )
    assert list(load()[1]) == ["c"]
    assert len(calls) == 2


def test_a_plugin_that_hangs_and_reports_another_is_found(world) -> None:
    def end(names: set[str]) -> Outcome:
        if "b" in names:
            return Outcome(failure="did not end within 1 s", progress="a", timed_out=True)
        return Outcome(value=sorted(names))

    world(end)
    outcome, ended = load()
    assert outcome.value == ["c"]
    assert ended.keys() == {"a", "b"}


def test_several_plugins_that_end_the_process_are_found(world) -> None:
    world(
        lambda names: (
            Outcome(failure=CRASH, progress=min(names & {"a", "b"}))
            if names & {"a", "b"}
            else Outcome(value=1)
        )
    )
    assert sorted(load()[1]) == ["a", "b"]


def test_no_plugin_is_blamed_where_core_cannot_be_imported(world) -> None:
    calls = world(lambda names: Outcome(failure="ImportError: no torch"))
    assert load() == (Outcome(failure="ImportError: no torch"), {})
    assert len(calls) == 2


def test_no_plugin_is_blamed_where_each_works_alone(world) -> None:
    world(lambda names: Outcome(failure=CRASH) if len(names) > 1 else Outcome(value=1))
    outcome, ended = load()
    assert (outcome.failure, ended) == (CRASH, {})
    (found,) = [probe for probe in probes.probes(Trial(1.0)) if "import" in probe.name]
    assert found.remark.endswith(f"failed, and no single plugin explains it: {CRASH}")


def test_a_variable_of_the_user_stays(world, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUSTOM_PYPTO_DISABLE", "a")
    calls = world(lambda names: Outcome(value=1))
    load()
    assert calls == [(None, "a")]


def test_progress_of_a_child_is_known_however_it_ends() -> None:
    code = "from custom_pypto_cli import child; import os"
    code += "; child.report_progress('a'); child.report_progress('b')"
    assert child.run(f"{code}; os._exit(0)").progress == "b"
    assert child.run(f"{code}; report(1)").progress == "b"
    hung = child.run(f"{code}; import signal; signal.pause()", time_limit=5)
    assert (hung.progress, hung.timed_out) == ("b", True)


def test_no_progress_is_reported_outside_of_a_child() -> None:
    child.report_progress("nobody listens")
