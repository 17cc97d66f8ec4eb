"""The cache of built libraries is used only if nobody else can have written to it."""

import os
import stat
from pathlib import Path

import pytest
from custom_pypto_simulator_build import BuildError, build_libraries
from custom_pypto_simulator_build.cache import cache_folder, expect_own


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (folder := tmp_path / "cache").mkdir()
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


@pytest.mark.parametrize("place", ["..", "."])
def test_cache_that_others_can_write_is_refused(cache: Path, place: str) -> None:
    path = (cache / place).resolve()
    path.chmod(path.stat().st_mode | 0o002)
    fault = "can be changed by everybody"
    with pytest.raises(BuildError, match=f"cache: {path} {fault}; delete the cache, or set "):
        build_libraries()


def test_folder_of_another_user_is_refused(cache: Path) -> None:
    # Only root could make one.
    values = list(cache.stat())
    values[stat.ST_UID] = 12345
    with pytest.raises(BuildError, match="belongs to the user id 12345; delete the cache"):
        expect_own(str(cache), os.stat_result(values))
