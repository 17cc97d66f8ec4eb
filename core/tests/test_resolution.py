"""Decisions among plugins: conflicts, requirements, loading order."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from custom_pypto_discovery import resolution
from custom_pypto_discovery.installed_plugin import InstalledPlugin, Status
from manifests import make_manifest, make_op


def plugin(
    name: str = "first",
    *,
    distribution: str = "",
    ops: Sequence[str] | None = None,
    requires_ops: Sequence[str] = (),
) -> InstalledPlugin:
    """A plugin that nothing is wrong with."""
    distribution = distribution or f"acme-{name.replace('_', '-')}"
    manifest = make_manifest(
        name,
        distribution=distribution,
        ops=tuple(map(make_op, [name] if ops is None else ops)),
        requires_ops=tuple(requires_ops),
    )
    return InstalledPlugin(name, "acme", distribution, "1.0", manifest=manifest)


def reasons(*plugins: InstalledPlugin) -> dict[str, str]:
    """The reasons by distribution, empty for those that are accepted."""
    return {each.distribution: each.reason for each in resolution.resolve(plugins)}


def statuses(*plugins: InstalledPlugin) -> dict[str, str]:
    return {each.distribution: str(each.status) for each in resolution.resolve(plugins)}


def test_plugins_with_nothing_wrong_are_accepted() -> None:
    assert resolution.resolve([]) == ()
    assert resolution.resolve([plugin()]) == (plugin(),)
    assert statuses(plugin(ops=["same.a", "same.b", "same"])) == {"acme-first": "accepted"}


# Two plugins, and why both are rejected.
CONFLICTS: dict[str, tuple[InstalledPlugin, InstalledPlugin, str]] = {
    "one name": (
        plugin(distribution="acme-one", ops=["a"]),
        plugin(distribution="acme-two!", ops=["b"]),
        (
            "acme-one and acme-two! each provide a plugin called 'first', so none of them loads;"
            " leave out all but one: pip uninstall acme-one, or pip uninstall 'acme-two!'"
        ),
    ),
    "one name in one distribution": (
        plugin(distribution="acme", ops=["a"]),
        replace(plugin(distribution="acme", ops=["b"]), module="another"),
        (
            "acme has 2 entry points called 'first', so none loads; its author must give each"
            " plugin a name of its own"
        ),
    ),
    "one op": (
        plugin("zebra", distribution="acme-one", ops=["same.a", "a"]),
        plugin("ant", distribution="acme-two!", ops=["b", "same.b"]),
        (
            "the plugin 'zebra' of acme-one and the plugin 'ant' of acme-two! each provide the op"
            " 'same', so none of them loads; leave out all but one: CUSTOM_PYPTO_DISABLE=zebra (or"
            " pip uninstall acme-one), or CUSTOM_PYPTO_DISABLE=ant (or pip uninstall 'acme-two!')"
        ),
    ),
}


@pytest.mark.parametrize(("one", "two", "reason"), CONFLICTS.values(), ids=CONFLICTS)
def test_a_conflict_rejects_both(one: InstalledPlugin, two: InstalledPlugin, reason: str) -> None:
    found = resolution.resolve([two, one])
    assert [(each.status, each.reason) for each in found] == [(Status.REJECTED, reason)] * 2
    assert resolution.resolve([one, two]) == found


@pytest.mark.parametrize("status", [Status.BLOCKED, Status.REJECTED])
def test_op_of_a_plugin_that_does_not_load_is_free(status: Status) -> None:
    one, two = plugin("one", ops=["same"]), plugin("two", ops=["same"])
    aside = one.block("why") if status is Status.BLOCKED else one.reject("why")
    assert statuses(aside, two) == {"acme-one": str(status), "acme-two": "accepted"}


def test_plugin_loads_after_those_it_requires() -> None:
    plugins = [
        # Any overload meets the requirement of any.
        plugin("ant", ops=["ant.y"], requires_ops=("zebra",)),
        plugin("bee", requires_ops=("ant.x",)),
        plugin("cat"),
        plugin("zebra"),
    ]
    assert [each.name for each in resolution.resolve(plugins)] == ["cat", "zebra", "ant", "bee"]


NOBODY = (
    "requires the op 'other', which no installed plugin provides; install the plugin that provides"
    " it, its README says which"
)
OTHER = "requires the op 'other' of the plugin 'other', which is {}"
# Plugins, the status of the first and of those that need it, and the reason of `first`.
UNMET: dict[str, tuple[list[InstalledPlugin], str, str]] = {
    "nobody provides it": ([plugin(requires_ops=("other",))], "rejected", NOBODY),
    "one that is rejected": (
        [plugin(requires_ops=("other",)), plugin("other").reject("it is old")],
        "rejected",
        OTHER.format("rejected: it is old"),
    ),
    "one that is blocked": (
        [plugin(requires_ops=("other",)), plugin("other").block("of a variable")],
        "blocked",
        OTHER.format("blocked: of a variable"),
    ),
    "one that two provide": (
        [plugin(requires_ops=("same",)), *(plugin(name, ops=["same"]) for name in ("one", "two"))],
        "rejected",
        "requires the op 'same' of the plugin 'one', which is rejected: the plugin 'one' of acme-",
    ),
}


@pytest.mark.parametrize(("plugins", "status", "reason"), UNMET.values(), ids=UNMET)
def test_an_unmet_requirement_passes_on(
    plugins: list[InstalledPlugin], status: str, reason: str
) -> None:
    plugins = [*plugins, plugin("user", requires_ops=("first",))]
    found = statuses(*plugins)
    assert (found["acme-first"], found["acme-user"]) == (status, status)
    assert reasons(*plugins)["acme-first"].startswith(reason)


def test_circle_of_requirements_is_shown() -> None:
    plugins = [
        plugin("a", requires_ops=("b",)),
        plugin("b", requires_ops=("c",)),
        plugin("c", requires_ops=("e",)),
        plugin("e", requires_ops=("b",)),
        plugin("d"),
    ]
    circle = (
        "circular requires-ops: b -> c -> e -> b; one of these plugins must stop requiring the"
        " other"
    )
    assert reasons(*plugins) == {
        "acme-d": "",
        "acme-a": f"requires the op 'b' of the plugin 'b', which is rejected: {circle}",
        "acme-b": circle,
        "acme-c": circle,
        "acme-e": circle,
    }
