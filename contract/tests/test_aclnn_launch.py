"""aclnn_launch: what of a launch does not fit the header of its kernel."""

from __future__ import annotations

import pytest
from custom_pypto_contract import aclnn_header
from custom_pypto_contract.aclnn_launch import find_differences, make_launch

T = "aclTensor *"


def differences(types: str, arguments: str, declared: str) -> list[str]:
    """What of a launch differs from a declaration; T in `types` is a tensor."""
    [found] = aclnn_header.parse(
        f"aclnnStatus aclnnXGetWorkspaceSize({declared}{', ' * bool(declared)}uint64_t *w,"
        " aclOpExecutor **e);"
    )
    assert found.arguments is not None
    listed = (T if each == "T" else each for each in types.split(", ") if each)
    launch = make_launch("aclnnX", ",".join(listed), arguments)
    return find_differences(launch, found.arguments)


X_SCALE_K = "const aclTensor *x, double scale, int64_t k, const aclTensor *out"
ADDED_EPS = X_SCALE_K.replace("int64_t k", "double eps, int64_t k")
SCALE_FIRST = "double scale, const aclTensor *x, int64_t k, const aclTensor *out"
SCALE_LAST = "const aclTensor *x, int64_t k, const aclTensor *out, double scale"
PASSED = "a.x, a.scale, a.k, out.result"
# Types and names of what is passed, what the header declares, and the only difference.
LAUNCHES = {
    "fits": ("T, double, int64_t, T", PASSED, X_SCALE_K, ""),
    "nothing is passed": ("", "", "", ""),
    "names that the header lacks": (
        "T, T, T", "a.self, a.other, out.result",
        "const aclTensor *x1, const aclTensor *x2, const aclTensor *y", "",
    ),
    "a name that is passed twice": (
        "T, T, T", "query, cache, cache",
        "const aclTensor *query, const aclTensor *cache, const aclTensor *value", "",
    ),
    "an argument that was added to the header": (
        "T, double, int64_t, T", PASSED, ADDED_EPS,
        "argument 3 of the header, `double eps`, is not passed",
    ),
    "an argument that the header lacks": (
        "T, double, double, int64_t, T", "x, scale, eps, k, out", X_SCALE_K,
        "argument 3, `eps`, of type double is not in the header",
    ),
    "another type": (
        "T, int64_t, int64_t, T", PASSED, X_SCALE_K,
        "argument 2, `a.scale`, is passed as int64_t; the header has `double scale`",
    ),
    "moved": (
        "T, double, int64_t, T", PASSED, SCALE_FIRST,
        "argument 1, `a.x`, is argument 2 in the header, `const aclTensor *x`",
    ),
    "moved among arguments of one type": (
        "T, T, T", "a.query, a.key, out.result",
        "const aclTensor *key, const aclTensor *queryOptional, const aclTensor *out",
        "argument 1, `a.query`, is argument 2 in the header, `const aclTensor *queryOptional`",
    ),
    "moved without a name": (
        "T, double, int64_t, T", "", SCALE_LAST,
        "argument 2 is argument 4 in the header, `double scale`",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", LAUNCHES)
def test_what_does_not_fit_is_said_once(case: str) -> None:
    types, arguments, declared, difference = LAUNCHES[case]
    assert differences(types, arguments, declared) == ([difference] if difference else [])


@pytest.mark.parametrize(
    ("passed", "declared", "fits"),
    [
        ("int64_t", "int8_t mode", True),
        ("int64_t", "const int32_t mode", True),
        ("aclDataType", "int32_t dtype", True),
        ("char *", "const char *mode", True),
        ("nullptr", "const aclTensor *biasOptional", True),
        ("nullptr", "char *mode", True),
        ("aclIntArray *", "const aclIntArray *sizes", True),
        ("double", "float ratio", False),
        ("int64_t", "bool flag", False),
        ("bool", "int64_t flag", False),
        ("int64_t", "aclDataType dtype", False),
        ("aclDataType", "int64_t dtype", False),
        ("nullptr", "int64_t k", False),
        ("aclTensorList *", "const aclTensor *x", False),
        ("T", "aclTensor **x", False),
    ],
)
def test_types_that_fit(passed: str, declared: str, fits: bool) -> None:
    found = differences(passed, "", declared)
    assert fits is (found == [])
    assert all(each.startswith("argument 1 is passed as ") for each in found)


def test_commas_of_templates_leave_a_launch_without_names() -> None:
    launch = make_launch("aclnnX", f"aclTensorList *,{T}", "std::vector<std::variant<A, B>>{a}, o")
    assert launch.arguments == ()
    assert make_launch("aclnnX", "aclTensorList *", "std::vector<T>{a, b}").arguments != ()
