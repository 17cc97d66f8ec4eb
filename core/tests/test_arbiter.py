"""Verdicts on forged plugins: every refusal gives need, have and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from custom_pypto_contract.manifest import Library, Manifest, Op
from custom_pypto_discovery import arbiter
from custom_pypto_discovery.arbiter import Decision, Host, Verdict
from custom_pypto_discovery.candidates import Candidate
from custom_pypto_discovery.claim import Claim, File, LibraryFile
from custom_pypto_discovery.environment import Environment

HOST = Host(
    platform="linux_x86_64",
    core_abi=(1, 3),
    core_version="0.4.0",
    torch=(2, 12),
    trusted_owners=frozenset({0, 1000}),
)
LIBRARY = Path("/site/acme/lib/libacme.so")
HASH = "ab" * 32
REINSTALL = "reinstall it: pip install --force-reinstall --no-deps acme-first"


def plugin(
    name: str = "first",
    *,
    distribution: str = "",
    ops: Sequence[str] | None = None,
    library: LibraryFile | None = None,
    **forged: Any,
) -> Claim:
    """A plugin with nothing wrong except what is forged."""
    distribution = distribution or f"acme-{name.replace('_', '-')}"
    names = [name] if ops is None else ops
    entries: dict[str, Any] = {
        "name": name,
        "distribution": distribution,
        "version": "1.0",
        "core_abi": (1, 0),
        "torch_target": "2.10",
        "platform": "linux_x86_64",
        "ops": tuple(Op(op, f"{op}(Tensor x) -> Tensor") for op in names),
        "requires_ops": (),
        "library": Library("lib/libacme.so", HASH),
        **forged,
    }
    return Claim(
        Candidate(name, "acme", distribution, "1.0", Path("/site/acme")),
        Manifest(**entries),
        library or LibraryFile(LIBRARY, HASH, guarded=(File(LIBRARY, 1000, False),)),
    )


def judge(*claims: Claim, environment: Environment | None = None) -> list[Verdict]:
    return list(arbiter.judge(claims, environment or Environment(), HOST))


def refusal(claim: Claim) -> str:
    """The reason why `claim` is quarantined when it is alone."""
    (verdict,) = judge(claim)
    assert verdict.decision is Decision.QUARANTINED
    return verdict.reason


def reasons(*claims: Claim) -> dict[str, str]:
    """The reasons by distribution, empty for those that are accepted."""
    return {verdict.claim.candidate.distribution: verdict.reason for verdict in judge(*claims)}


def test_nothing_installed_gives_no_verdict() -> None:
    assert judge() == []


def test_plugin_with_nothing_wrong_is_accepted() -> None:
    (verdict,) = judge(plugin())
    assert (verdict.decision, verdict.reason) == (Decision.ACCEPTED, "")


def test_problem_of_the_claim_is_the_reason() -> None:
    broken = Claim(Candidate("first", "acme", "acme-first", ""), problem="its metadata is broken")
    assert refusal(broken) == "its metadata is broken"


# Core ABI


def test_older_minor_abi_is_accepted() -> None:
    assert judge(plugin(core_abi=(1, 2)))[0].decision is Decision.ACCEPTED


def test_same_abi_is_accepted() -> None:
    assert judge(plugin(core_abi=(1, 3)))[0].decision is Decision.ACCEPTED


def test_newer_minor_abi_is_refused() -> None:
    assert refusal(plugin(core_abi=(1, 4))) == (
        "requires core ABI 1.4, but custom-pypto-core 0.4.0 offers 1.3. Upgrade core:"
        " pip install --upgrade custom-pypto-core"
    )


def test_newer_major_abi_is_refused() -> None:
    assert refusal(plugin(core_abi=(2, 0))) == (
        "requires core ABI 2.0, but custom-pypto-core 0.4.0 offers 1.3. Upgrade core:"
        " pip install --upgrade custom-pypto-core"
    )


def test_older_major_abi_is_refused() -> None:
    assert refusal(plugin(core_abi=(0, 9))) == (
        "requires core ABI 0.9, but custom-pypto-core 0.4.0 offers 1.3. Upgrade the plugin:"
        " pip install --upgrade acme-first; if there is no newer version, it has to be built again"
        " with custom-pypto-core 0.4.0"
    )


def test_minor_abi_is_compared_as_a_number() -> None:
    host = Host(platform="linux_x86_64", core_abi=(1, 10), trusted_owners=frozenset({1000}))
    (verdict,) = arbiter.judge([plugin(core_abi=(1, 9))], Environment(), host)
    assert verdict.decision is Decision.ACCEPTED


# Platform and torch


def test_foreign_platform_is_refused() -> None:
    assert refusal(plugin(platform="linux_aarch64")) == (
        "was built for linux_aarch64, but this Python runs on linux_x86_64. Install the wheel for"
        " this platform: pip install --force-reinstall --no-deps acme-first"
    )


def test_older_torch_than_the_plugin_needs_is_refused() -> None:
    assert refusal(plugin(torch_target="2.13")) == (
        "requires torch 2.13 or newer, but torch 2.12 is installed. Upgrade it:"
        " pip install --upgrade 'torch>=2.13'"
    )


def test_torch_versions_are_compared_as_numbers() -> None:
    assert judge(plugin(torch_target="2.9"))[0].decision is Decision.ACCEPTED


def test_unknown_torch_refuses_nothing() -> None:
    host = Host(platform="linux_x86_64", trusted_owners=frozenset({1000}))
    (verdict,) = arbiter.judge([plugin(torch_target="9.9")], Environment(), host)
    assert verdict.decision is Decision.ACCEPTED


# Identity


def test_entry_point_with_another_name_than_the_manifest_is_refused() -> None:
    assert refusal(_renamed("second")) == (
        "its entry point calls it 'second', its manifest 'first'; give the entry point the plugin's"
        " name and build it again"
    )


def _renamed(entry_point: str) -> Claim:
    claim = plugin()
    candidate = Candidate(entry_point, "acme", "acme-first", "1.0", Path("/site/acme"))
    return Claim(candidate, claim.manifest, claim.library)


def test_package_of_another_distribution_is_refused() -> None:
    assert refusal(_installed("acme-other", "1.0")) == (
        "/site/acme belongs to the distribution acme-first, not to acme-other; reinstall acme-other"
    )


def test_names_of_distributions_are_compared_normalized() -> None:
    (verdict,) = judge(_installed("Acme_First", "1.0"))
    assert verdict.decision is Decision.ACCEPTED


def test_files_of_another_version_are_refused() -> None:
    assert refusal(_installed("acme-first", "1.1")) == (
        "its files are of version 1.0, but acme-first 1.1 is installed; reinstall acme-first"
    )


def _installed(distribution: str, version: str) -> Claim:
    claim = plugin()
    candidate = Candidate("first", "acme", distribution, version, Path("/site/acme"))
    return Claim(candidate, claim.manifest, claim.library)


# The library


def test_library_that_cannot_be_read_is_refused() -> None:
    assert refusal(plugin(library=LibraryFile(LIBRARY, problem="its library is missing"))) == (
        f"its library is missing; {REINSTALL}"
    )


def test_library_with_another_hash_is_refused() -> None:
    assert refusal(plugin(library=LibraryFile(LIBRARY, "cd" * 32))) == (
        f"its library {LIBRARY} is not the one it was built with: sha256 cdcdcdcdcdcdcdcd..., the"
        f" manifest says abababababababab...; {REINSTALL}"
    )


def test_library_outside_the_package_is_refused() -> None:
    outside = LibraryFile(Path("/tmp/libevil.so"), HASH, inside_package=False)
    assert refusal(plugin(library=outside)) == (
        "its library lib/libacme.so leads out of its package, to /tmp/libevil.so; a library must be"
        f" a file of its own package; {REINSTALL}"
    )


def test_library_that_everybody_may_write_is_refused() -> None:
    writable = LibraryFile(LIBRARY, HASH, guarded=(File(LIBRARY, 1000, True),))
    assert refusal(plugin(library=writable)) == (
        f"{LIBRARY} can be changed by every user of this machine, who could so run code as you;"
        f" make it safe: chmod o-w {LIBRARY}"
    )


def test_folder_of_the_library_that_everybody_may_write_is_refused() -> None:
    guarded = (File(LIBRARY, 1000, False), File(LIBRARY.parent, 1000, True))
    reason = refusal(plugin(library=LibraryFile(LIBRARY, HASH, guarded=guarded)))
    assert reason.startswith(f"{LIBRARY.parent} can be changed by every user")


def test_library_of_a_foreign_user_is_refused() -> None:
    foreign = LibraryFile(LIBRARY, HASH, guarded=(File(LIBRARY, 1234, False),))
    assert refusal(plugin(library=foreign)) == (
        f"{LIBRARY} belongs to the user id 1234; allowed are 0, 1000 (root, you, and the owner of"
        f" core's files); {REINSTALL}"
    )


@pytest.mark.parametrize("owner", [0, 1000])
def test_library_of_a_trusted_user_is_accepted(owner: int) -> None:
    library = LibraryFile(LIBRARY, HASH, guarded=(File(LIBRARY, owner, False),))
    assert judge(plugin(library=library))[0].decision is Decision.ACCEPTED


# The environment


def test_blocked_plugin_is_blocked_with_the_variable_as_reason() -> None:
    (verdict,) = judge(plugin(), environment=Environment(disable=frozenset({"first"})))
    assert verdict.decision is Decision.BLOCKED
    assert verdict.reason.startswith("CUSTOM_PYPTO_DISABLE names it")


def test_blocked_plugin_is_not_judged() -> None:
    (verdict,) = judge(plugin(core_abi=(9, 0)), environment=Environment(allow=frozenset()))
    assert verdict.decision is Decision.BLOCKED


def test_blocked_plugin_claims_no_op() -> None:
    one, two = plugin("one", ops=["same"]), plugin("two", ops=["same"])
    verdicts = judge(one, two, environment=Environment(disable=frozenset({"one"})))
    assert [(each.name, each.decision) for each in verdicts] == [
        ("two", Decision.ACCEPTED),
        ("one", Decision.BLOCKED),
    ]


# Duplicates


def test_of_two_plugins_with_one_name_the_first_distribution_stays() -> None:
    one = plugin(distribution="acme-one", ops=["a"])
    two = plugin(distribution="acme-two", ops=["b"])
    assert reasons(two, one) == {
        "acme-one": "",
        "acme-two": "acme-one provides a plugin called 'first' already, and of two the first by"
        " distribution name stays; pip uninstall acme-one or acme-two",
    }


def test_of_two_plugins_with_one_op_the_first_distribution_stays() -> None:
    one = plugin("zebra", distribution="acme-one", ops=["same", "a"])
    two = plugin("ant", distribution="acme-two", ops=["b", "same"])
    assert reasons(two, one) == {
        "acme-one": "",
        "acme-two": "the op 'same' is provided by the plugin 'zebra' of acme-one already, and of"
        " two the first by distribution name stays; pip uninstall acme-one or acme-two",
    }


def test_overloads_of_one_op_belong_to_one_plugin() -> None:
    one, two = plugin("one", ops=["same.a"]), plugin("two", ops=["same.b"])
    assert reasons(one, two)["acme-two"].startswith("the op 'same' is provided by")


def test_several_overloads_in_one_plugin_are_accepted() -> None:
    assert judge(plugin(ops=["same.a", "same.b", "same"]))[0].decision is Decision.ACCEPTED


def test_op_of_a_refused_plugin_is_free() -> None:
    one, two = plugin("one", ops=["same"], core_abi=(9, 0)), plugin("two", ops=["same"])
    assert reasons(one, two)["acme-two"] == ""


def test_verdicts_do_not_depend_on_the_order_of_the_claims() -> None:
    claims = [plugin(name, ops=["same"]) for name in ("one", "two", "three")]
    assert judge(*claims) == judge(*reversed(claims))


def test_two_entry_points_of_one_distribution_are_explained() -> None:
    claims = [plugin(distribution="acme", ops=["a"]), plugin(distribution="acme", ops=["b"])]
    assert judge(*claims)[1].reason.endswith("acme must have one entry point for each plugin")


# Requirements


def test_plugin_loads_after_those_it_requires() -> None:
    claims = [
        plugin("ant", requires_ops=("zebra",)),
        plugin("bee", requires_ops=("ant",)),
        plugin("cat"),
        plugin("zebra"),
    ]
    assert [verdict.name for verdict in judge(*claims)] == ["cat", "zebra", "ant", "bee"]


def test_requirement_that_nobody_provides_is_refused() -> None:
    claims = [plugin("first", requires_ops=("othr",)), plugin("other")]
    assert reasons(*claims)["acme-first"] == (
        "requires the op 'othr', which no installed plugin provides (did its author mean 'other'?);"
        " install the plugin that provides it, its README says which"
    )


def test_requirement_is_not_confused_with_an_op_of_the_plugin_itself() -> None:
    claims = [plugin("first", ops=["other"], requires_ops=("othr",))]
    assert "did its author mean" not in reasons(*claims)["acme-first"]


def test_requirement_of_a_refused_plugin_gives_its_reason() -> None:
    claims = [
        plugin("first", requires_ops=("other",)),
        plugin("other", platform="linux_aarch64"),
    ]
    assert reasons(*claims)["acme-first"].startswith(
        "requires the op 'other' of the plugin 'other', which is quarantined: was built for"
        " linux_aarch64"
    )


def test_requirement_of_a_blocked_plugin_gives_its_reason() -> None:
    claims = [plugin("first", requires_ops=("other",)), plugin("other")]
    verdicts = judge(*claims, environment=Environment(disable=frozenset({"other"})))
    (refused,) = [each for each in verdicts if each.name == "first"]
    assert refused.decision is Decision.QUARANTINED
    assert refused.reason.startswith(
        "requires the op 'other' of the plugin 'other', which is blocked: CUSTOM_PYPTO_DISABLE"
    )


def test_refusal_passes_on_to_all_that_require_it() -> None:
    claims = [
        plugin("a", requires_ops=("b",)),
        plugin("b", requires_ops=("c",)),
        plugin("c", core_abi=(2, 0)),
    ]
    assert {verdict.decision for verdict in judge(*claims)} == {Decision.QUARANTINED}


def test_requirement_of_any_overload_is_met_by_any_overload() -> None:
    claims = [plugin("first", requires_ops=("other.x",)), plugin("other", ops=["other.y"])]
    assert [verdict.name for verdict in judge(*claims)] == ["other", "first"]


def test_circle_of_requirements_is_refused_and_shown() -> None:
    claims = [
        plugin("a", requires_ops=("b",)),
        plugin("b", requires_ops=("c",)),
        plugin("c", requires_ops=("b",)),
        plugin("d"),
    ]
    assert reasons(*claims) == {
        "acme-d": "",
        "acme-a": "requires ops in a circle, so none can load first: b -> c -> b; one of these"
        " plugins must stop requiring the other",
        "acme-b": "requires ops in a circle, so none can load first: b -> c -> b; one of these"
        " plugins must stop requiring the other",
        "acme-c": "requires ops in a circle, so none can load first: c -> b -> c; one of these"
        " plugins must stop requiring the other",
    }


def test_host_is_this_one() -> None:
    host = arbiter.this_host(core="0.1.0", torch="2.13.0+cpu")
    assert (host.core_version, host.torch) == ("0.1.0", (2, 13))
    assert host.platform


def test_host_reads_versions_of_what_is_installed() -> None:
    assert arbiter.this_host().torch is not None
