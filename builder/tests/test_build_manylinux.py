"""What a build for other systems refuses; `.ci/release.py` builds for them."""

from pathlib import Path

import pytest
from build_project import Project
from custom_pypto_build import manylinux_tools
from custom_pypto_build.errors import BuildError
from custom_pypto_build.installed import Torch
from custom_pypto_build.manylinux_tools import Target, find_target
from custom_pypto_contract import platforms, variables


def test_the_variable_names_glibc_and_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_target({}) is None
    target = find_target({variables.PLATFORM: "manylinux_2_28_aarch64"})
    assert target == Target("manylinux_2_28_aarch64", (2, 28), "aarch64")
    assert target.zig[-1] == "aarch64-linux-gnu.2.28"
    monkeypatch.setenv(variables.PLATFORM, "manylinux_2_28_aarch64")
    assert platforms.platform_tag() == "linux_aarch64"


@pytest.mark.parametrize(
    "tag", ["linux_x86_64", "manylinux_2_12_x86_64", "musllinux_1_2_x86_64", "manylinux_2_28_mips"]
)
def test_other_tags_are_refused(tag: str) -> None:
    with pytest.raises(BuildError, match=r"CUSTOM_PYPTO_PLATFORM must be .* got '" + tag):
        find_target({variables.PLATFORM: tag})


def test_an_isolated_build_for_other_systems_requires_ziglang(project: Project) -> None:
    env = {variables.PLATFORM: "manylinux_2_28_aarch64"}
    for hook in ("get_requires_for_build_wheel", "get_requires_for_build_editable"):
        assert project.hook(hook) == []
        assert project.hook(hook, env=env) == ["ziglang"]


def test_without_ziglang_the_build_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manylinux_tools, "find_spec", lambda name: None)
    target = Target("manylinux_2_28_x86_64", (2, 28), "x86_64")
    with pytest.raises(BuildError, match="pip install ziglang"):
        manylinux_tools.write_stubs(target, Torch(tmp_path, tmp_path), tmp_path)


@pytest.mark.parametrize(
    ("version", "glibc", "is_there"),
    [
        ("GLIBCXX_3.4.24", (2, 27), True),
        ("GLIBCXX_3.4.24", (2, 26), False),
        ("CXXABI_1.3.13", (2, 33), False),
        ("CXXABI_1.3.13", (2, 34), True),
        ("GLIBCXX_3.4.999", (2, 99), False),
        ("CXXABI_TM_1", (2, 17), True),
        ("GCC_3.0", (2, 17), True),
    ],
)
def test_versions_of_libstdcxx_that_systems_have(
    version: str, glibc: tuple[int, int], is_there: bool
) -> None:
    assert manylinux_tools.is_in(version, glibc) is is_there
