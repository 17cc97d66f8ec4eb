"""Environment variables choose the plugins to load; strict mode."""

import pytest
from custom_pypto_contract.variables import DISABLE, STRICT
from loading import REPORT
from plugin_factory import Site


@pytest.fixture
def failing(site: Site) -> Site:
    """A site with two plugins that fail, and one that needs an op of theirs."""
    for name in ("broken", "worse"):
        site.install(name, f"raise ValueError({name!r})")
    site.install("user", requires_ops=["broken"])
    return site


def test_strict_names_every_failure(failing: Site) -> None:
    done = failing.start("import custom_pypto.core", **{STRICT: "1"})
    assert done.returncode == 1
    assert "PluginError: CUSTOM_PYPTO_STRICT is set, and 3 of the installed plugins" in done.stderr
    assert "the plugin 'worse' (custom-pypto-worse 0.1.0) failed" in done.stderr


def test_strict_does_not_mind_blocked_plugins(failing: Site) -> None:
    report = failing.run(REPORT, **{STRICT: "1", DISABLE: "broken,worse"})
    assert set(report["states"].values()) == {"blocked"}
    assert report["reasons"]["user"].startswith(
        "requires the op 'broken' of the plugin 'broken', which is blocked: CUSTOM_PYPTO_DISABLE"
    )


@pytest.mark.parametrize(
    ("action", "variables", "error"),
    [
        ("default", {STRICT: "1"}, "PluginError"),
        ("error", {}, "PluginFailedWarning"),
        ("default", {"INTERRUPT": "1"}, "KeyboardInterrupt"),
    ],
    ids=["strict", "warnings that are errors", "interrupted"],
)
def test_import_that_fails(site: Site, action: str, variables: dict[str, str], error: str) -> None:
    site.install("a_healthy")
    code = "import os\nraise KeyboardInterrupt if 'INTERRUPT' in os.environ else ValueError"
    site.install("broken", code)
    given = site.run(
        f"""
        import os, torch, warnings
        warnings.simplefilter({action!r})
        try: import custom_pypto.core
        except BaseException as error: raised = type(error).__name__
        left = torch._C._get_operation_overload("custom_pypto::a_healthy", "")
        for name in {[*variables]}: del os.environ[name]
        warnings.simplefilter("ignore")
        import custom_pypto.core as core
        give([raised, left, {{p.name: p.status for p in core.plugins()}}])
        """,
        **variables,
    )
    assert given == [error, None, {"a_healthy": "loaded", "broken": "failed"}]
