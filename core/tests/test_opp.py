"""The opp packages in wheels, in ASCEND_CUSTOM_OPP_PATH."""

import os
from pathlib import Path

import pytest
from custom_pypto.core import opp
from plugin_factory import Site


@pytest.fixture(autouse=True)
def _unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(opp.VARIABLE, raising=False)


def named() -> str | None:
    return os.environ.get(opp.VARIABLE)


def test_folder_of_a_wheel_is_one_package_or_holds_vendors(tmp_path: Path) -> None:
    assert opp.find_packages(tmp_path / "gone") == ()
    assert opp.find_packages(tmp_path) == (tmp_path,)
    for name in ("b", "a"):
        (tmp_path / "vendors" / name).mkdir(parents=True)
    (tmp_path / "vendors" / "config.ini").touch()
    assert opp.find_packages(tmp_path) == (tmp_path / "vendors" / "a", tmp_path / "vendors" / "b")


@pytest.mark.parametrize(
    ("before", "new", "after"),
    [
        ("/machine/one:/machine/two", ["/wheel"], "/wheel:/machine/one:/machine/two"),
        ("/machine:/wheel", [], "/machine:/wheel"),
        (None, ["/wheel"], "/wheel"),
    ],
)
def test_packages_that_are_not_named_go_before_what_is_named(
    monkeypatch: pytest.MonkeyPatch, before: str | None, new: list[str], after: str
) -> None:
    if before is not None:
        monkeypatch.setenv(opp.VARIABLE, before)
    assert (opp.announce([]), named()) == ((), before)
    announced = opp.announce([Path("/wheel")])
    assert (announced, named()) == (tuple(map(Path, new)), after)
    opp.withdraw(announced)
    assert named() == before


@pytest.mark.parametrize("code", ["", "raise RuntimeError('no')"], ids=["loaded", "failed"])
def test_loaded_plugin_alone_announces_its_package(site: Site, code: str) -> None:
    installed = site.install("shipping", code)
    installed.forge(opp="opp")
    (installed.package / "opp").mkdir()
    named = site.load(
        f"__import__('os').environ[{opp.VARIABLE!r}]", quiet=True, **{opp.VARIABLE: "/machine"}
    )
    assert named == ("/machine" if code else f"{installed.package / 'opp'}:/machine")


def test_npu_kernels_of_an_unknown_plugin(site: Site) -> None:
    assert site.load("refusal(core.npu_kernels, 'other', error=LookupError)") == (
        "no plugin 'other' is loaded; `custom-pypto list` shows which are"
    )


def test_package_that_everybody_can_write_is_not_announced(site: Site) -> None:
    installed = site.install("shipping")
    installed.forge(opp="opp")
    library = installed.package / "opp" / "op_api" / "lib" / "libcust_opapi.so"
    library.parent.mkdir(parents=True)
    library.touch()
    library.chmod(0o666)
    reason, named = site.load(
        f"(core.plugins()[0].reason, __import__('os').environ.get({opp.VARIABLE!r}))", quiet=True
    )
    assert reason.startswith(f"{library} can be changed by every user of this machine")
    assert named is None
