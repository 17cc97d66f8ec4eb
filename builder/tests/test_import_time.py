"""custom-pypto import: its time grows as the size of the files, whatever they contain."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

SIZE = 1 << 20
# What grows with the square takes minutes; what does not takes a second or two. The system counts
# the seconds that the process computes: others on the machine do not count.
MOST_CPU_SECONDS = 60

HEADER = "aclnnStatus aclnnXGetWorkspaceSize(int64_t k, uint64_t *w, aclOpExecutor **e);"
ENDS = "INPUT(x, TensorType({DT_FLOAT})).OUTPUT(y, TensorType({DT_FLOAT})).OP_END_FACTORY_REG(A)"
SHAPE = "REG_OP(A).OP_END(1) IMPL_OP(A).InferShape(F); F(InferShapeContext* context) {"


def repeat(part: str, before: str = "", after: str = "") -> str:
    """Return a text of some size; `#` in `part` is its number."""
    count = SIZE // len(part)
    return f"{before}{''.join(part.replace('#', str(i)) for i in range(count))}{after}"


def nest(opening: str, before: str = "") -> str:
    """Return a text of pairs of brackets inside each other."""
    count = SIZE // len(opening)
    closing = ")" if opening.endswith("(") else "}"
    return repeat(opening, before) + closing * count * opening.count("{" if closing == "}" else "(")


SOURCES: dict[str, Callable[[], str]] = {
    "operators": lambda: repeat(f"REG_OP(Op#).{ENDS}\n"),
    "operators with functions": lambda: repeat(
        "F#(InferShapeContext* context) { return GRAPH_SUCCESS; } IMPL_OP(Op#).InferShape(F#);"
        f" REG_OP(Op#).{ENDS}\n"
    ),
    "classes": lambda: repeat(
        'class Op# : public OpDef { Op#(const char* n) : OpDef(n) { this->Input("x"); } };\n'
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
    "spaces": lambda: repeat(" ", "IMPL_OP(A) const int", "!"),
    "spaces in a function": lambda: repeat(" ", f"{SHAPE} auto", "!; }"),
    "nested list": lambda: nest("{", "REG_OP(A).ATTR(a, ListInt, "),
    "digits": lambda: repeat("1", "REG_OP(A).ATTR(a, Int, ", "x).OP_END(A)"),
    "quotes": lambda: repeat('\\"', "IMPL_OP(A) "),
    "open comments": lambda: repeat("/*", "IMPL_OP(A) "),
    "open brackets": lambda: repeat("(", "IMPL_OP(A) "),
    "open templates": lambda: repeat("const a<", "IMPL_OP(A) "),
}
HEADERS: dict[str, Callable[[], str]] = {
    "declarations": lambda: repeat(HEADER.replace("X", "X#") + "\n"),
    "unclosed declarations": lambda: repeat("aclnnStatus aclnnX#GetWorkspaceSize(", HEADER),
    "nested declarations": lambda: nest("aclnnStatus aclnnY#GetWorkspaceSize(", HEADER),
    "parameters": lambda: HEADER + HEADER.replace("int64_t k, ", repeat("int64_t k, ")),
    "suffixes": lambda: HEADER.replace(" k,", repeat("Out", " k", ",")),
    "stars": lambda: HEADER.replace(" k,", repeat(" * a", " k", ",")),
}

LIMITED = """
import resource, sys
from pathlib import Path
from custom_pypto_build.importing import read_files
resource.setrlimit(resource.RLIMIT_CPU, ({seconds}, {seconds}))
read_files.read(read_files.Sources({option}=(Path(sys.argv[1]),)))
"""


@pytest.mark.parametrize(
    ("option", "name"),
    [*(("reg_op", name) for name in SOURCES), *(("aclnn", name) for name in HEADERS)],
)
def test_a_large_file_is_read_in_seconds(tmp_path: Path, option: str, name: str) -> None:
    texts = SOURCES if option == "reg_op" else HEADERS
    path = tmp_path / "file"
    path.write_text(texts[name](), encoding="utf-8")
    code = LIMITED.format(option=option, seconds=MOST_CPU_SECONDS)
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, check=False)
    assert done.returncode not in (-signal.SIGXCPU, -signal.SIGKILL), name
    assert done.returncode == 0, done.stderr.decode()
