"""aclnn_header: the declarations of kernels in headers of CANN, generated and hand-written."""

import pytest
from custom_pypto_contract import aclnn_header, cpp_text
from custom_pypto_contract.aclnn_header import Parameter

A = "aclnnStatus aclnnAGetWorkspaceSize"
COMMENTED = (
    "(char *mode, /* , */ // aclnnStatus aclnnBGetWorkspaceSize(int a);\n uint64_t *w,"
    " aclOpExecutor **e);\naclnnStatus aclnnA(void *w, uint64_t size)"
)


@pytest.mark.parametrize(
    ("declared", "parameters"),
    [
        (
            " (const  aclTensor* a, aclTensor  *\n b, aclTensor*c, uint64_t* w, aclOpExecutor **e)",
            [("const aclTensor *", "a"), ("aclTensor *", "b"), ("aclTensor *", "c")],
        ),
        (
            "(const aclTensor *, int64_t, unsigned int, uint64_t *, aclOpExecutor **)",
            [("const aclTensor *", ""), ("int64_t", ""), ("unsigned int", "")],
        ),
        (COMMENTED, [("char *", "mode")]),
    ],
)
def test_spaces_and_stars_are_written_in_one_way_and_a_parameter_needs_no_name(
    declared: str, parameters: list[tuple[str, str]]
) -> None:
    [found] = aclnn_header.parse(f"ACLNN_API aclnnStatus aclnnAGetWorkspaceSize{declared};")
    assert found.arguments == tuple(Parameter(*each) for each in parameters)
    assert [each.type for each in found.parameters[-2:]] == ["uint64_t *", "aclOpExecutor **"]


def test_without_size_and_executor_at_the_end_there_are_no_arguments() -> None:
    [found] = aclnn_header.parse("aclnnStatus aclnnAGetWorkspaceSize(const aclTensor *x);")
    assert found.arguments is None
    assert found.parameters == (Parameter("const aclTensor *", "x"),)


def test_both_of_two_declarations_are_returned() -> None:
    ends = "uint64_t *w, aclOpExecutor **e);\n"
    found = aclnn_header.parse(
        f"#if NEW\naclnnStatus aclnnAGetWorkspaceSize(int64_t k, {ends}#else\n"
        f"aclnnStatus aclnnAGetWorkspaceSize({ends}#endif\n"
    )
    assert [(each.line, len(each.arguments or ())) for each in found] == [(2, 1), (4, 0)]


def test_calls_and_unfinished_declarations_are_not_declarations() -> None:
    assert aclnn_header.parse("auto ret = aclnnAGetWorkspaceSize(x, &size, &executor);") == []
    assert aclnn_header.parse("aclnnStatus aclnnAGetWorkspaceSize(const aclTensor *x") == []
    assert aclnn_header.parse("aclnnStatus aclnnAGetWorkspaceSize(const aclTensor *x]);") == []
    [found] = aclnn_header.parse(f"{A}(int64_t k, {A}(int64_t k), int64_t m);")
    assert found.line == 1


def test_brackets_in_strings_and_comments_do_not_count() -> None:
    text = cpp_text.blank_comments("f(\"),/*\", /* ) */ '(', // )\n g(1, 2))")
    assert cpp_text.bracket_ends(text)[1] == len(text)
    assert list(cpp_text.split(text[2:-1])) == ['"),/*"', "'('", "g(1, 2)"]


def test_blanked_comments_keep_every_line_and_column() -> None:
    text = "a /* b\n c */ d // e\nf"
    blanked = cpp_text.blank_comments(text)
    assert [line.rstrip() for line in blanked.splitlines()] == ["a", "      d", "f"]
    assert cpp_text.Lines(text).number_at(text.index("f")) == 3
