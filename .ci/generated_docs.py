"""Check the generated texts of the documentation, or write them with --fix.

They are the contracts in the READMEs of plugins, the help of commands in docs/command-line.md, and
docs/variables.md.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import custom_pypto_cli
from custom_pypto_contract import ops_file
from custom_pypto_contract.contract import OpContract
from custom_pypto_contract.description import describe
from custom_pypto_contract.variables import GROUPS

ROOT = Path(__file__).resolve().parents[1]
COMMANDS = ROOT / "docs" / "command-line.md"
VARIABLES = ROOT / "docs" / "variables.md"
BEGIN = "<!-- Generated from ops.toml by .ci/generated_docs.py --fix -->"
END = "<!-- End of the generated part -->"
_SECTION = re.compile(rf"{re.escape(BEGIN)}\n.*?{re.escape(END)}", re.DOTALL)
_HELP = re.compile(r"^(```\n\$ custom-pypto ([^\n]*--help)\n).*?^```$", re.MULTILINE | re.DOTALL)
_VARIABLES = """\
# Environment variables

<!-- Generated from custom_pypto_contract/variables.py by .ci/generated_docs.py --fix -->

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
[launches.md](launches.md#where-kernels-are-looked-for) |
| of torch_npu: `TASK_QUEUE_ENABLE` | [launches.md](launches.md#what-a-launch-promises) |
| of a plugin: they contain its name, `CUSTOM_PYPTO_<NAME>_*` | its README; so far \
[one of sparse_attention](../plugins/sparse_attention/README.md#weights), \
`CUSTOM_PYPTO_SPARSE_ATTENTION_WEIGHTS`, read at the first call |
"""


def texts() -> Iterator[tuple[Path, str]]:
    """Yield each file with a generated text, and the whole text that it must have."""
    for readme in sorted(ROOT.glob("plugins/*/README.md")):
        yield readme, _readme(readme)
    text = COMMANDS.read_text(encoding="utf-8")
    yield COMMANDS, _HELP.sub(lambda block: f"{block[1]}{_help(block[2].split())}```", text)
    groups = (
        f"## {title}\n\n| variable | meaning |\n|---|---|\n"
        + "\n".join(f"| `{name}` | {meaning} |" for name, meaning in group.items())
        for title, group in GROUPS.items()
    )
    yield VARIABLES, _VARIABLES.format(groups="\n\n".join(groups))


def _readme(readme: Path) -> str:
    """Return the text of a plugin's README with the contracts that its ops.toml has now."""
    ops = ops_file.read(readme.with_name(ops_file.FILE_NAME)).ops
    section = "\n".join([BEGIN, "", *map(_format, ops), END])
    text, count = _SECTION.subn(lambda _: section, readme.read_text(encoding="utf-8"))
    if count != 1:
        raise ValueError(f"{readme}: write {BEGIN} and {END} once, where the contracts belong")
    return text


def _format(op: OpContract) -> str:
    """Return the text that `help` of an op shows, in a block that opens."""
    lines = [
        part
        for line in describe(op).split("\n")
        for part in textwrap.wrap(
            line, 118, subsequent_indent="      ", drop_whitespace=False, break_on_hyphens=False
        )
        or [""]
    ]
    text = "\n".join(line.rstrip() for line in lines)
    summary = f"<details><summary><code>{op.name}</code></summary>"
    return f"{summary}\n\n```text\n{text}\n```\n\n</details>\n"


def _help(arguments: list[str]) -> str:
    printed = io.StringIO()
    plain = mock.patch.dict(os.environ, {"COLUMNS": "80", "NO_COLOR": "1"})
    with plain, contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        custom_pypto_cli.main(arguments)
    return printed.getvalue()


def main() -> int:
    """Compare the files with their texts, or write them; return 1 if one differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fix", action="store_true", help="write what differs")
    fix = parser.parse_args().fix
    old = [path for path, text in texts() if path.read_text(encoding="utf-8") != text]
    for path in old:
        print(f"{path.relative_to(ROOT)}: {'rewritten' if fix else 'differs; run with --fix'}")
        if fix:
            path.write_text(dict(texts())[path], encoding="utf-8")
    return 1 if old and not fix else 0


if __name__ == "__main__":
    sys.exit(main())
