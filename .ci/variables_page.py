"""Check, or with --fix write, the page of environment variables, docs/variables.md.

Its rows are those of the table in `custom_pypto_contract.variables`.
"""

from __future__ import annotations

import sys

from custom_pypto_contract.variables import GROUPS
from generated_text import ROOT, main

PAGE = ROOT / "docs" / "variables.md"
_TEXT = """\
# Environment variables

<!-- Generated from custom_pypto_contract/variables.py by .ci/variables_page.py --fix -->

`custom-pypto doctor` shows the variables that are set, and finds misspelt ones.

{groups}

## Elsewhere

| variables | page |
|---|---|
| of the simulator, `CUSTOM_PYPTO_SIM_*` | [simulator](../simulator/README.md#faults) |
| of tests, `CUSTOM_PYPTO_TEST_*` and `CUSTOM_PYPTO_WHEELS` | \
[CONTRIBUTING.md](../CONTRIBUTING.md#test) |
| of compilers and builds: `CXX`, `CXXFLAGS`, `MAX_JOBS`, `NPU_ARCH`, `SOURCE_DATE_EPOCH`, ... | \
[building.md](building.md#compiler-and-flags) |
| of CANN: `ASCEND_HOME_PATH`, `ASCEND_OPP_PATH`, `ASCEND_CUSTOM_OPP_PATH` | \
[npu.md](npu.md#where-kernels-are-looked-for) |
| of torch_npu: `TASK_QUEUE_ENABLE` | [npu.md](npu.md#what-a-launch-promises) |
| of a plugin: they contain its name, `CUSTOM_PYPTO_<NAME>_*` | its README; so far \
[one of sparse_attention](../plugins/sparse_attention/README.md#weights), \
`CUSTOM_PYPTO_SPARSE_ATTENTION_WEIGHTS`, read at the first call |
"""


def page() -> str:
    """Return the page as it must be."""
    groups = (
        f"## {title}\n\n| variable | meaning |\n|---|---|\n"
        + "\n".join(f"| `{name}` | {meaning} |" for name, meaning in group.items())
        for title, group in GROUPS.items()
    )
    return _TEXT.format(groups="\n\n".join(groups))


if __name__ == "__main__":
    sys.exit(main(__doc__, {PAGE: page()}))
