"""custom-pypto import: its time grows as the size of a file, whatever the file contains."""

import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from custom_pypto_cli import main

SIZE = 1 << 18
# A text of a quarter of the size takes a quarter of the time, or a sixteenth if time grows with the
# square. Only what the thread computes counts: others on the machine do not.
SMALLER, MOST_TIMES = 4, 7

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


def repeat(size: int, part: str, before: str = "", after: str = "") -> str:
    """Return a text of some size; `#` in `part` is its number, of at most five digits."""
    count = size // len(part.replace("#", "#####"))
    return f"{before}{''.join(part.replace('#', str(i)) for i in range(count))}{after}"


def nest(size: int, opening: str, before: str = "") -> str:
    """Return a text of pairs of brackets inside each other."""
    count = size // len(opening)
    closing = ")" if opening.endswith("(") else "}"
    return repeat(size, opening, before) + closing * count * opening.count(
        "{" if closing == "}" else "("
    )


SOURCES: dict[str, Callable[[int], str]] = {
    "classes": lambda size: repeat(size, CLASS),
    "operators with functions": lambda size: repeat(
        size,
        "F#(InferShapeContext* context) { return GRAPH_SUCCESS; } IMPL_OP(Op#).InferShape(F#);"
        f" REG_OP(Op#).{ENDS}\n",
    ),
    "unclosed operators": lambda size: repeat(size, "REG_OP(Op#).INPUT(x, "),
    "nested operators": lambda size: nest(size, "REG_OP(Op#).A("),
    "unclosed classes": lambda size: repeat(size, "class Op# : public OpDef { "),
    "nested classes": lambda size: nest(
        size, "class Op# : public OpDef { Op#(int n) : OpDef(n) { "
    ),
    "nested functions": lambda size: nest(
        size, "F#(InferShapeContext* context) { IMPL_OP(A#).InferShape(F#); REG_OP(A#).OP_END(1)\n"
    ),
    "unended constants": lambda size: repeat(size, "const int a = ", "IMPL_OP(A) "),
    "long word": lambda size: repeat(size, "a", "IMPL_OP(A) const "),
    "spaces in a function": lambda size: repeat(size, " ", f"{SHAPE} auto", "!; }"),
    "nested list": lambda size: nest(size, "{", "REG_OP(A).ATTR(a, ListInt, "),
    "digits": lambda size: repeat(size, "1", "REG_OP(A).ATTR(a, Int, ", "x).OP_END(A)"),
    "quotes": lambda size: repeat(size, '\\"', "IMPL_OP(A) "),
    "open comments": lambda size: repeat(size, "/*", "IMPL_OP(A) "),
    "open templates": lambda size: repeat(size, "const a<", "IMPL_OP(A) "),
}
HEADERS: dict[str, Callable[[int], str]] = {
    "kernels": lambda size: repeat(size, KERNEL),
    "unclosed declarations": lambda size: repeat(
        size, "aclnnStatus aclnnX#GetWorkspaceSize(", HEADER
    ),
    "nested declarations": lambda size: nest(size, "aclnnStatus aclnnY#GetWorkspaceSize(", HEADER),
    "parameters": lambda size: HEADER + HEADER.replace("int64_t k, ", repeat(size, "int64_t k, ")),
    "suffixes": lambda size: HEADER.replace(" k,", repeat(size, "Out", " k", ",")),
    "stars": lambda size: HEADER.replace(" k,", repeat(size, " * a", " k", ",")),
}

COMPLETE = """- func: f#(Tensor x, int k) -> Tensor
  gen_opapi: {out: {size: x, dtype: x}, exec: aclnnF#}
"""
FUNCTIONS = {"complete functions": lambda size: repeat(size // 8, COMPLETE, "custom:\n")}
TEXTS = {"--reg-op": SOURCES, "--aclnn": HEADERS, "--op-plugin": FUNCTIONS}


@pytest.mark.parametrize(
    ("option", "name"), [(option, name) for option, texts in TEXTS.items() for name in texts]
)
def test_time_grows_as_the_size(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str, name: str
) -> None:
    def seconds(size: int) -> float:
        path = tmp_path / "file"
        path.write_text(TEXTS[option][name](size), encoding="utf-8")
        start = time.thread_time()
        status = main(["import", option, str(path), "--output", str(tmp_path / f"plugin{size}")])
        taken = time.thread_time() - start
        assert status == (0 if name == "complete functions" else 1)
        assert "\nwrote " in capsys.readouterr().out
        shutil.rmtree(tmp_path / f"plugin{size}")
        return taken

    # Something else on the machine may slow one of the two down, but not each time.
    assert any(seconds(SIZE) < MOST_TIMES * seconds(SIZE // SMALLER) for _ in range(3))
