"""custom-pypto import: 4 MB take seconds; time grows as the size, whatever the files contain."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from custom_pypto_cli import main
from custom_pypto_contract import small_file

SIZE = 1 << 19
# No text here takes a second; a machine may be half as fast. What grows with the square takes many
# seconds for 512 KB. Only those count that the thread computes: others on the machine do not.
MOST_CPU_SECONDS = 1.75
# Of the largest file that the command reads.
A_QUARTER = small_file.MAX_SIZE // 4

HEADER = "aclnnStatus aclnnXGetWorkspaceSize(int64_t k, uint64_t *w, aclOpExecutor **e);"
ENDS = "INPUT(x, TensorType({DT_FLOAT})).OUTPUT(y, TensorType({DT_FLOAT})).OP_END_FACTORY_REG(A)"
SHAPE = "REG_OP(A).OP_END(1) IMPL_OP(A).InferShape(F); F(InferShapeContext* context) {"


# Declarations one behind the other, without a comment.
CLASS = """class Op# : public OpDef {
    explicit Op#(const char* name) : OpDef(name) {
        this->Input("x").ParamType(REQUIRED).DataType({ge::DT_FLOAT16, ge::DT_FLOAT});
        this->Output("y").ParamType(REQUIRED).DataType({ge::DT_FLOAT16, ge::DT_FLOAT});
        this->AICore().AddConfig("ascend910b");
    }
};
"""
KERNEL = """aclnnStatus aclnnOp#GetWorkspaceSize(const aclTensor *x, const aclTensor *out,
    uint64_t *workspaceSize, aclOpExecutor **executor);
aclnnStatus aclnnOp#(void *workspace, uint64_t size, aclOpExecutor *executor, aclrtStream stream);
"""


def repeat(part: str, before: str = "", after: str = "", size: int = SIZE) -> str:
    """Return a text of some size; `#` in `part` is its number, of at most five digits."""
    count = size // len(part.replace("#", "#####"))
    return f"{before}{''.join(part.replace('#', str(i)) for i in range(count))}{after}"


def nest(opening: str, before: str = "") -> str:
    """Return a text of pairs of brackets inside each other."""
    count = SIZE // len(opening)
    closing = ")" if opening.endswith("(") else "}"
    return repeat(opening, before) + closing * count * opening.count("{" if closing == "}" else "(")


SOURCES: dict[str, Callable[[], str]] = {
    "classes": lambda: repeat(CLASS, size=A_QUARTER),
    "operators with functions": lambda: repeat(
        "F#(InferShapeContext* context) { return GRAPH_SUCCESS; } IMPL_OP(Op#).InferShape(F#);"
        f" REG_OP(Op#).{ENDS}\n"
    ),
    "unclosed operators": lambda: repeat("REG_OP(Op#).INPUT(x, "),
    "nested operators": lambda: nest("REG_OP(Op#).A("),
    "unclosed classes": lambda: repeat("class Op# : public OpDef { "),
    "nested classes": lambda: nest("class Op# : public OpDef { Op#(int n) : OpDef(n) { "),
    "nested functions": lambda: nest(
        "F#(InferShapeContext* context) { IMPL_OP(A#).InferShape(F#); REG_OP(A#).OP_END(1)\n"
    ),
    "unended constants": lambda: repeat("const int a = ", "IMPL_OP(A) "),
    "long word": lambda: repeat("a", "IMPL_OP(A) const "),
    "spaces in a function": lambda: repeat(" ", f"{SHAPE} auto", "!; }"),
    "nested list": lambda: nest("{", "REG_OP(A).ATTR(a, ListInt, "),
    "digits": lambda: repeat("1", "REG_OP(A).ATTR(a, Int, ", "x).OP_END(A)"),
    "quotes": lambda: repeat('\\"', "IMPL_OP(A) "),
    "open comments": lambda: repeat("/*", "IMPL_OP(A) "),
    "open templates": lambda: repeat("const a<", "IMPL_OP(A) "),
}
HEADERS: dict[str, Callable[[], str]] = {
    "kernels": lambda: repeat(KERNEL, size=A_QUARTER),
    "unclosed declarations": lambda: repeat("aclnnStatus aclnnX#GetWorkspaceSize(", HEADER),
    "nested declarations": lambda: nest("aclnnStatus aclnnY#GetWorkspaceSize(", HEADER),
    "parameters": lambda: HEADER + HEADER.replace("int64_t k, ", repeat("int64_t k, ")),
    "suffixes": lambda: HEADER.replace(" k,", repeat("Out", " k", ",")),
    "stars": lambda: HEADER.replace(" k,", repeat(" * a", " k", ",")),
}

COMPLETE = """- func: f#(Tensor x, int k) -> Tensor
  gen_opapi: {out: {size: x, dtype: x}, exec: aclnnF#}
"""
FUNCTIONS = {"complete functions": lambda: repeat(COMPLETE, "custom:\n", size=SIZE // 8)}
TEXTS = {"--reg-op": SOURCES, "--aclnn": HEADERS, "--op-plugin": FUNCTIONS}


@pytest.mark.parametrize(
    ("option", "name"), [(option, name) for option, texts in TEXTS.items() for name in texts]
)
def test_time_grows_as_the_size(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str, name: str
) -> None:
    path = tmp_path / "file"
    path.write_text(TEXTS[option][name](), encoding="utf-8")
    start = time.thread_time()
    status = main(["import", option, str(path), "--output", str(tmp_path / "plugin")])
    assert time.thread_time() - start < MOST_CPU_SECONDS
    assert status == (0 if name == "complete functions" else 1)
    assert "\nwrote " in capsys.readouterr().out
