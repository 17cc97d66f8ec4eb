"""The cache of built libraries is used only if nobody else can have written to it."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from custom_pypto_simulator_build import BuildError, build_libraries
from custom_pypto_simulator_build.cache import cache_folder, check


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache with a library in it."""
    folder = tmp_path / "cache"
    (folder / "libraries" / "digest").mkdir(parents=True)
    (folder / "libraries" / "digest" / "libopapi.so").touch()
    monkeypatch.setenv("CUSTOM_PYPTO_SIM_CACHE", str(folder))
    return folder


def test_cache_that_is_missing_is_made_for_its_user_alone(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUSTOM_PYPTO_SIM_CACHE", str(cache / "new"))
    assert cache_folder().stat().st_mode & 0o777 == 0o700


def test_cache_is_found_behind_a_link_that_its_user_names(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = cache.with_name("link")
    link.symlink_to(cache)
    monkeypatch.setenv("CUSTOM_PYPTO_SIM_CACHE", str(link))
    assert cache_folder() == cache


def open_to_others(path: Path) -> None:
    path.chmod(path.stat().st_mode | 0o002)


def put_link(path: Path) -> None:
    other = path.rename(path.with_name("other"))
    path.symlink_to(other)


OTHERS = [
    (open_to_others, "can be changed by everybody", ".."),
    (open_to_others, "can be changed by everybody", "."),
    (open_to_others, "can be changed by everybody", "libraries/digest"),
    (open_to_others, "can be changed by everybody", "libraries/digest/libopapi.so"),
    (put_link, "is a link", "libraries/digest"),
    (put_link, "is a link", "libraries/digest/libopapi.so"),
]


@pytest.mark.parametrize(("spoil", "fault", "place"), OTHERS)
def test_cache_that_others_can_write_is_refused(
    cache: Path, spoil: Callable[[Path], None], fault: str, place: str
) -> None:
    path = (cache / place).resolve()
    spoil(path)
    with pytest.raises(BuildError, match=f"cache: {path} {fault}; delete the cache, or set "):
        build_libraries()


@pytest.mark.parametrize("is_reachable", [True, False])
def test_file_of_another_user_is_refused(cache: Path, is_reachable: bool) -> None:
    # Only root could make one.
    values = list(cache.stat())
    values[stat.ST_UID] = 12345
    with pytest.raises(BuildError, match="belongs to the user id 12345; delete the cache"):
        check(str(cache), os.stat_result(values), is_reachable=is_reachable)


def test_what_others_cannot_reach_may_have_any_mode(cache: Path) -> None:
    open_to_others(cache / "libraries" / "digest")
    cache.chmod(0o700)
    assert cache_folder() == cache
