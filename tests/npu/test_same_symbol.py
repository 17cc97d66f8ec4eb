"""CANN's aclnnCompressor beside an opp package's of the same name and other arguments."""

import shutil
from pathlib import Path

import pytest
from worker import RunCode

BEGIN = (
    "aclnnStatus aclnnCompressorGetWorkspaceSize(const aclTensor *x, const aclTensor *wkv,"
    " const aclTensor *wgate, aclTensor *stateCacheRef, const aclTensor *ape,"
)
LENGTHS = (
    " const aclTensor *stateBlockTableOptional, const aclTensor *cuSeqlensOptional,"
    " const aclTensor *sequsedOptional, const aclTensor *startPosOptional,"
)
END = " uint64_t *workspaceSize, aclOpExecutor **executor);\n"
HEADERS = {
    "stock": f"{BEGIN}{LENGTHS} int64_t cmpRatio, int64_t coff, int64_t cacheMode,"
    " int64_t stateCacheStrideDim0, bool gradEnabled, const aclTensor *cmpKvOut,"
    f" const aclTensor *softmaxScoreOut, const aclTensor *kvOut,{END}",
    "fused": f"{BEGIN} const aclTensor *normWeight, const aclTensor *ropeSin,"
    f" const aclTensor *ropeCos,{LENGTHS} int64_t ropeHeadDim, int64_t cmpRatio, int64_t coff,"
    " double normEps, int64_t rotaryMode, int64_t cacheMode, int64_t stateCacheStrideDim0,"
    f" const aclTensor *cmpKvOut,{END}",
}
CODE = """
import os, torch, torch_npu
from custom_pypto_testing import checks
from custom_pypto_testing.ops_under_test import op_of_plugin
os.environ["ASCEND_CUSTOM_OPP_PATH"] = {!r}
try:
    checks.check_values(op_of_plugin("npu_compressor", "npu").cases[0])
    print("equal")
except RuntimeError as error:
    print(error)
"""


@pytest.fixture(scope="module")
def packages(opp: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Both kernels, each in an opp package with its header."""
    copied = {}
    for vendor, header in HEADERS.items():
        copied[vendor] = tmp_path_factory.mktemp("compressor") / vendor
        shutil.copytree(opp[vendor], copied[vendor])
        (include := copied[vendor] / "op_api" / "include").mkdir(exist_ok=True)
        (include / "aclnn_compressor.h").write_text(header)
    return copied


@pytest.mark.parametrize(("first", "second"), [("stock", "fused"), ("fused", "stock")])
def test_the_kernel_of_other_arguments_is_refused_where_it_is_first(
    packages: dict[str, Path], run_code: RunCode, first: str, second: str
) -> None:
    printed = run_code("stock", CODE.format(f"{packages[first]}:{packages[second]}"))
    if first == "stock":
        assert printed.endswith("equal\n"), printed
        return
    sentence = "npu_compressor: aclnnCompressor is launched with other arguments than its header"
    for part in (sentence, f"the header is {packages['fused']}", "Remedy: install"):
        assert part in printed
