"""The examples build and install the wheels in an order in which that works."""

from __future__ import annotations

from pathlib import Path

import pytest

from examples import wheels


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """What the examples would run: pip's command and project, and the program's."""
    seen: list[str] = []

    def run(command: list[str]) -> str:
        name = Path(command[-1]).name
        seen.append(f"{command[4]} {name}" if "pip" in command else f"list after {seen[-1]}")
        if "wheel" in command:
            (Path(command[command.index("--wheel-dir") + 1]) / f"{name}.whl").touch()
        return ""

    monkeypatch.setattr(wheels, "_run", run)
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    return seen


def test_the_builder_and_core_are_installed_before_the_first_op_is_built(
    commands: list[str], tmp_path: Path
) -> None:
    built = wheels.build_and_install(wheels.PROJECTS, tmp_path)
    assert [wheel.stem for wheel in built] == [each.name for each in wheels.PROJECTS.values()]
    assert commands[1:8] == [
        "wheel contract",
        "install custom-pypto-contract",
        "wheel builder",
        "install custom-pypto-build",
        "wheel core",
        "install custom-pypto-core",
        "wheel add_custom",
    ]


def test_the_list_is_shown_once_core_is_there(commands: list[str], tmp_path: Path) -> None:
    installed = [name for name, _ in wheels.install_one_by_one(tmp_path)]
    assert installed == [*wheels.PROJECTS][2:]
    assert commands[1:3] == [
        "install custom-pypto-core",
        "list after install custom-pypto-core",
    ]


def test_what_models_of_transformers_run_on_is_installed_in_order() -> None:
    assert [*wheels.FOR_TRANSFORMERS] == [
        "custom-pypto-contract",
        "custom-pypto-build",
        "custom-pypto-core",
        "custom-pypto-lightning-indexer",
        "custom-pypto-sparse-attention",
        "custom-pypto-transformers",
    ]
