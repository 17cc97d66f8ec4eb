"""aclnn_launch: what of a launch does not fit the header of its kernel."""

from __future__ import annotations

import pytest
from custom_pypto_contract import aclnn_header
from custom_pypto_contract.aclnn_launch import find_differences, make_launch

T = "aclTensor *"


def differences(types: str, arguments: str, declared: str) -> list[str]:
    """What of a launch differs from a declaration; T in `types` is a tensor."""
    [found] = aclnn_header.parse(
        f"aclnnStatus aclnnXGetWorkspaceSize({declared}, uint64_t *w, aclOpExecutor **e);"
    )
    assert found.arguments is not None
    listed = (T if each == "T" else each for each in types.split(", "))
    launch = make_launch("aclnnX", ",".join(listed), arguments)
    return find_differences(launch, found.arguments)


HEADER = "const aclTensor *x, double scale, int64_t k, const aclTensor *out"


def test_what_the_header_declares_fits() -> None:
    assert differences("T, double, int64_t, T", "a.x, a.scale, a.k, out.result", HEADER) == []


@pytest.mark.parametrize(
    ("passed", "declared"),
    [
        ("int64_t", "int8_t mode"),
        ("int64_t", "const int32_t mode"),
        ("aclDataType", "int32_t dtype"),
        ("char *", "const char *mode"),
        ("nullptr", "const aclTensor *biasOptional"),
        ("nullptr", "char *mode"),
        ("aclIntArray *", "const aclIntArray *sizes"),
    ],
)
def test_types_that_fit(passed: str, declared: str) -> None:
    assert differences(passed, "", declared) == []


@pytest.mark.parametrize(
    ("passed", "declared"),
    [
        ("double", "float ratio"),
        ("int64_t", "bool flag"),
        ("bool", "int64_t flag"),
        ("int64_t", "aclDataType dtype"),
        ("aclDataType", "int64_t dtype"),
        ("nullptr", "int64_t k"),
        ("aclTensorList *", "const aclTensor *x"),
        ("T", "aclTensor **x"),
    ],
)
def test_types_that_do_not_fit(passed: str, declared: str) -> None:
    [found] = differences(passed, "", declared)
    assert found.startswith("argument 1 is passed as ")


def test_an_argument_added_to_the_header_is_named() -> None:
    added = "const aclTensor *x, double scale, double eps, int64_t k, const aclTensor *out"
    expected = ["argument 3 of the header, `double eps`, is not passed"]
    assert differences("T, double, int64_t, T", "a.x, a.scale, a.k, out.result", added) == expected


def test_an_argument_that_the_header_lacks_is_named() -> None:
    assert differences("T, double, double, int64_t, T", "x, scale, eps, k, out", HEADER) == [
        "argument 3, `eps`, of type double is not in the header"
    ]


def test_an_argument_of_another_type_is_named() -> None:
    assert differences("T, int64_t, int64_t, T", "a.x, a.scale, a.k, out.result", HEADER) == [
        "argument 2, `a.scale`, is passed as int64_t; the header has `double scale`"
    ]


def test_a_moved_argument_is_named_once() -> None:
    moved = "double scale, const aclTensor *x, int64_t k, const aclTensor *out"
    assert differences("T, double, int64_t, T", "a.x, a.scale, a.k, out.result", moved) == [
        "argument 1, `a.x`, is argument 2 in the header, `const aclTensor *x`"
    ]


def test_of_moved_arguments_of_one_type_names_tell() -> None:
    swapped = "const aclTensor *key, const aclTensor *queryOptional, const aclTensor *out"
    [found] = differences("T, T, T", "a.query, a.key, out.result", swapped)
    assert found == (
        "argument 1, `a.query`, is argument 2 in the header, `const aclTensor *queryOptional`"
    )


def test_names_that_the_header_does_not_have_tell_nothing() -> None:
    declared = "const aclTensor *x1, const aclTensor *x2, const aclTensor *y"
    assert differences("T, T, T", "a.self, a.other, out.result", declared) == []


def test_a_name_that_is_passed_twice_tells_nothing() -> None:
    declared = "const aclTensor *query, const aclTensor *cache, const aclTensor *value"
    assert differences("T, T, T", "query, cache, cache", declared) == []


def test_without_names_an_argument_of_a_type_of_its_own_is_moved() -> None:
    moved = "const aclTensor *x, int64_t k, const aclTensor *out, double scale"
    assert differences("T, double, int64_t, T", "", moved) == [
        "argument 2 is argument 4 in the header, `double scale`"
    ]


def test_commas_of_templates_leave_a_launch_without_names() -> None:
    launch = make_launch("aclnnX", f"aclTensorList *,{T}", "std::vector<std::variant<A, B>>{a}, o")
    assert launch.arguments == ()
    assert make_launch("aclnnX", "aclTensorList *", "std::vector<T>{a, b}").arguments != ()


def test_a_launch_may_pass_nothing() -> None:
    [found] = aclnn_header.parse(
        "aclnnStatus aclnnXGetWorkspaceSize(uint64_t *w, aclOpExecutor **e);"
    )
    assert find_differences(make_launch("aclnnX", "", ""), found.arguments or ()) == []
