"""Launches under torch_npu are compared with the header of the kernel's opp package."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

GUARD = """
from pathlib import Path
from custom_pypto.core.library import guard
guard(library, Path({plugin!r}))
x = torch.ones(2, dtype=torch.int64).npu()
"""
RIGHT = "int64_t number, const aclTensor *out"


@pytest.fixture
def write_header(package: Path) -> Iterator[Callable[[str], Path]]:
    """Writes the header of aclnnNumber with these arguments; it is gone after the test."""
    header = package / "op_api" / "include" / "aclnn_number.h"
    header.parent.mkdir(exist_ok=True)

    def write(arguments: str) -> Path:
        ends = "uint64_t *workspaceSize, aclOpExecutor **executor"
        header.write_text(f"aclnnStatus aclnnNumberGetWorkspaceSize({arguments}, {ends});\n")
        return header

    yield write
    header.unlink()


@pytest.mark.parametrize("queue", [0, 1, 2])
def test_other_arguments_than_the_header_s_are_refused_where_the_op_is_called(
    launch: Callable[..., Any],
    plugin: Path,
    write_header: Callable[[str], Path],
    queue: int,
) -> None:
    header = write_header("const aclTensor *out, int64_t number")
    difference = "argument 1, `a.value`, is argument 2 in the header, `int64_t number`"
    code = GUARD.format(plugin=str(plugin)) + "give(refusal(ops.test_number, x, 3))"
    text = launch(code, TASK_QUEUE_ENABLE=queue)
    assert text.startswith("test_number: aclnnNumber is launched with other arguments than its")
    for part in (difference, f"the header is {header}:1", f"the plugin is {plugin}"):
        assert f"\n  {part}\n" in text


@pytest.mark.parametrize("queue", [0, 1, 2])
def test_what_the_header_declares_is_launched(
    launch: Callable[..., Any],
    plugin: Path,
    write_header: Callable[[str], Path],
    queue: int,
) -> None:
    write_header(RIGHT)
    code = GUARD.format(plugin=str(plugin)) + "give(ops.test_number(x, 3).tolist())"
    assert launch(code, TASK_QUEUE_ENABLE=queue) == [3, 3]


def test_a_launch_is_compared_once(
    launch: Callable[..., Any], plugin: Path, write_header: Callable[[str], Path]
) -> None:
    header = write_header(RIGHT)
    code = f"""
ops.test_number(x, 2)
Path({str(header)!r}).write_text("")
give(ops.test_number(x, 3).tolist())
"""
    assert launch(GUARD.format(plugin=str(plugin)) + code) == [3, 3]


def test_the_comparison_can_be_switched_off(
    launch: Callable[..., Any], plugin: Path, write_header: Callable[[str], Path]
) -> None:
    write_header("bool flag")
    code = GUARD.format(plugin=str(plugin)) + "give(ops.test_number(x, 3).tolist())"
    assert launch(code, CUSTOM_PYPTO_NPU_HEADERS=0) == [3, 3]


def test_a_package_without_headers_is_launched(launch: Callable[..., Any], plugin: Path) -> None:
    code = GUARD.format(plugin=str(plugin)) + "give(ops.test_number(x, 3).tolist())"
    assert launch(code) == [3, 3]
