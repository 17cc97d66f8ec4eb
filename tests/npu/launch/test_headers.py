"""Launches under torch_npu are compared with the header of the kernel's opp package."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from worker import Launch

CODE = """
from pathlib import Path
from custom_pypto.core.library import give_comparison
give_comparison(library, Path({plugin!r}))
header = Path({header!r})
x = torch.ones(2, dtype=torch.int64).npu()
"""
CALL = "give(ops.test_number(x, 3).tolist())"
RIGHT = "int64_t number, const aclTensor *out"
WRONG = "const aclTensor *out, int64_t number"


@pytest.fixture
def header(package: Path) -> Iterator[Path]:
    """The place for the header of aclnnNumber; it is gone after the test."""
    path = package / "op_api" / "include" / "aclnn_number.h"
    path.parent.mkdir(exist_ok=True)
    yield path
    path.unlink(missing_ok=True)


def declaration(arguments: str) -> str:
    ends = "uint64_t *workspaceSize, aclOpExecutor **executor"
    return f"aclnnStatus aclnnNumberGetWorkspaceSize({arguments}, {ends});\n"


def test_other_arguments_than_the_header_s_are_refused_where_the_op_is_called(
    launch: Launch, plugin: Path, header: Path, queue: int
) -> None:
    header.write_text(declaration(WRONG))
    code = CODE.format(plugin=str(plugin), header="")
    text = launch(code + "give(refusal(ops.test_number, x, 3))", TASK_QUEUE_ENABLE=queue)
    assert text.startswith("test_number: aclnnNumber is launched with other arguments than its")
    difference = "argument 1, `a.value`, is argument 2 in the header, `int64_t number`"
    for part in (difference, f"the header is {header}:1", f"the plugin is {plugin}"):
        assert f"\n  {part}\n" in text


# The header of another opp package, which has a kernel of the same name and comes second.
BEHIND = f"""
import shutil
other = shutil.copytree(header.parents[2], Path("other").absolute())
(other / "op_api" / "include" / header.name).write_text({declaration(WRONG)!r})
os.environ["ASCEND_CUSTOM_OPP_PATH"] += f":{{other}}"
"""


@pytest.mark.parametrize(
    ("declared", "before", "variables"),
    [
        (RIGHT, "", {"TASK_QUEUE_ENABLE": 0}),
        (RIGHT, "", {"TASK_QUEUE_ENABLE": 1}),
        (RIGHT, "", {"TASK_QUEUE_ENABLE": 2}),
        # Compared once.
        (RIGHT, f"ops.test_number(x, 2); header.write_text({declaration(WRONG)!r})", {}),
        (WRONG, "", {"CUSTOM_PYPTO_NPU_HEADERS": 0}),
        (None, "", {}),
        (None, BEHIND, {}),
    ],
)
def test_a_launch_goes_through(
    launch: Launch,
    plugin: Path,
    header: Path,
    declared: str | None,
    before: str,
    variables: dict[str, int],
) -> None:
    if declared is not None:
        header.write_text(declaration(declared))
    code = CODE.format(plugin=str(plugin), header=str(header))
    assert launch(f"{code}{before}\n{CALL}", **variables) == [3, 3]
