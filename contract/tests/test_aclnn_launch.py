"""aclnn_launch: what of a launch does not fit the header of its kernel."""

from pathlib import Path

import pytest
from custom_pypto_contract import aclnn_header
from custom_pypto_contract.aclnn_launch import find_differences, make_launch

LAUNCHES = Path(__file__).with_name("contracts") / "launches.txt"
T = "aclTensor *"


def differences(types: str, arguments: str, declared: str) -> list[str]:
    """What of a launch differs from a declaration; T in `types` is a tensor."""
    [found] = aclnn_header.parse(
        f"aclnnStatus aclnnXGetWorkspaceSize({declared}{', ' if declared else ''}uint64_t *w,"
        " aclOpExecutor **e);"
    )
    assert found.arguments is not None
    listed = (T if each == "T" else each for each in types.split(", ") if each)
    return find_differences(make_launch("aclnnX", ",".join(listed), arguments), found.arguments)


@pytest.mark.parametrize("paragraph", LAUNCHES.read_text(encoding="utf-8").split("\n\n")[1:])
def test_what_does_not_fit_is_said_once(paragraph: str) -> None:
    _, *given, found = paragraph.rstrip("\n").split("\n")
    types, arguments, declared = ("" if each == "-" else each for each in given)
    assert [found.removeprefix("!").strip()] == (differences(types, arguments, declared) or [""])


def test_commas_of_templates_leave_a_launch_without_names() -> None:
    launch = make_launch("aclnnX", f"aclTensorList *,{T}", "std::vector<std::variant<A, B>>{a}, o")
    assert launch.arguments == ()
    assert make_launch("aclnnX", "aclTensorList *", "std::vector<T>{a, b}").arguments != ()
