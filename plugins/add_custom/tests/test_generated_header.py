"""ops.h.golden shows what the build makes of ops.toml."""

from pathlib import Path

from custom_pypto_build import ops_header
from custom_pypto_contract import ops_file

FOLDER = Path(__file__).parent


def test_golden_header_is_what_the_build_generates() -> None:
    generated = ops_header.header_text(ops_file.read(FOLDER.parent / "ops.toml"))
    golden = (FOLDER / "ops.h.golden").read_text(encoding="utf-8")
    assert golden == generated, "after an install, copy build/custom-pypto/*/generated/ops.h"
