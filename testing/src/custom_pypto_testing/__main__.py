"""``python -m custom_pypto_testing my_op``: the suite on a plugin, without a test file."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import custom_pypto.core as core

try:
    import pytest
except ModuleNotFoundError:
    sys.exit("the conformance suite runs under pytest: pip install pytest")

_FILE = """\
import custom_pypto_testing


class TestPlugin(custom_pypto_testing.Conformance):
    plugin = {name!r}
"""


def main(arguments: list[str] | None = None) -> int:
    """Run the suite; return pytest's exit status."""
    parser = argparse.ArgumentParser(prog="python -m custom_pypto_testing", description=__doc__)
    parser.add_argument("plugin", help="the plugin's name, as `custom-pypto list` shows it")
    parser.add_argument("options", nargs=argparse.REMAINDER, help="for pytest")
    given = parser.parse_args(arguments)
    known = [plugin.name for plugin in core.plugins()]
    if given.plugin not in known:
        parser.error(f"no plugin named {given.plugin!r} is installed; installed: {known}")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "test_conformance.py")
        file.write_text(_FILE.format(name=given.plugin), encoding="utf-8")
        # pytest warns that it cannot rewrite assertions of this package, which is imported already.
        quiet = ["-q", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
        options = [*quiet, f"--rootdir={folder}", *given.options]
        return int(pytest.main([str(file), *options]))


if __name__ == "__main__":
    sys.exit(main())
