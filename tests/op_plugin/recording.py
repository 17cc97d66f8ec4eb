"""Kernels that record what imported ops and torch_npu's ops pass to them."""

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path
from shutil import copy

from custom_pypto_build.importing.model import ImportedOp
from custom_pypto_contract import cpp_text
from custom_pypto_contract.schema import parse_schema

RECORDER = Path(__file__).with_name("recorder.h")

_TYPES = {
    "Tensor": "const aclTensor*",
    "Tensor[]": "const aclTensorList*",
    "int": "int64_t",
    "float": "double",
    "bool": "bool",
    "str": "const char*",
    "int[]": "const aclIntArray*",
    "float[]": "const aclFloatArray*",
    "bool[]": "const aclBoolArray*",
    "ScalarType": "aclDataType",
}
_ASKED_FOR = {"aclnnInplaceLerps": ("Tensor", "Tensor", "float")}
"""Kernels that torch_npu looks for before it launches another one."""

_PROJECT = '[tool.custom-pypto.simulated-kernels]\nrecorded = ["kernels.cpp"]\n'


def kernel_of(op: ImportedOp) -> str:
    """Return the kernel that an op launches."""
    return op.launch.partition("(")[0]


def write(ops: Iterable[ImportedOp], folder: Path) -> Path:
    """Write a project with the kernels of some ops into `folder`; return the folder."""
    kernels = dict(_ASKED_FOR) | {kernel_of(op): tuple(_types(op)) for op in ops}
    lines = [f'#include "{RECORDER.name}"', ""]
    for kernel, types in sorted(kernels.items()):
        names = [f"a{number}" for number in range(len(types))]
        declared = [f"{_TYPES[type_]} {name}" for type_, name in zip(types, names, strict=True)]
        parameters = ", ".join([*declared, "uint64_t* size", "aclOpExecutor** executor"])
        lines.append(f"RECORDED({', '.join([kernel, f'({parameters})', *names])})")
    folder.mkdir()
    copy(RECORDER, folder)
    (folder / "kernels.cpp").write_text("\n".join([*lines, ""]), encoding="utf-8")
    (folder / "pyproject.toml").write_text(_PROJECT, encoding="utf-8")
    return folder


def _types(op: ImportedOp) -> Iterator[str]:
    types = {each.name: each.type.removesuffix("?") for each in parse_schema(op.schema).arguments}
    for passed in cpp_text.split(op.launch.partition("(")[2].removesuffix(")")):
        if passed in op.outputs:
            yield "Tensor"
        elif passed in types:
            yield types[passed]
        else:
            yield type(ast.literal_eval(passed)).__name__
