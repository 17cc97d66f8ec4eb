"""Runs transformers' own tests of models that are served: by eager, then on the ops.

git clone --depth 1 --branch v5.23.0 https://github.com/huggingface/transformers
python tests/transformers_suite.py transformers deepseek_v32 glm_moe_dsa
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

_VARIABLE = "CUSTOM_PYPTO_TEST_IMPLEMENTATION"


def pytest_configure() -> None:
    """Give models that name no implementation the one of the variable; this file is a plugin."""
    from custom_pypto_transformers import served
    from transformers import PreTrainedModel

    modules = {family.module for family in served.FAMILIES}
    choose = PreTrainedModel.get_correct_attn_implementation

    def chosen(self: Any, requested: str | None, *args: Any, **kwargs: Any) -> str:
        if requested is None and type(self).__module__ in modules:
            requested = os.environ[_VARIABLE]
        found: str = choose(self, requested, *args, **kwargs)
        return found

    PreTrainedModel.get_correct_attn_implementation = chosen


def run(checkout: Path, family: str, implementation: str, options: list[str]) -> dict[str, str]:
    """Run a family's tests in a process: each "passed", "skipped", "failure" or "error"."""
    with tempfile.TemporaryDirectory() as folder:
        report, here = Path(folder, "report.xml"), Path(__file__)
        command = [sys.executable, "-m", "pytest", f"tests/models/{family}", f"--junitxml={report}"]
        paths = [str(here.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {**os.environ, _VARIABLE: implementation, "HF_HUB_OFFLINE": "1"}
        environment["PYTHONPATH"] = os.pathsep.join(paths)
        command += ["-q", "-p", "no:cacheprovider", "-p", here.stem, *options]
        subprocess.run(command, cwd=checkout, env=environment, check=False, stdout=sys.stderr)
        cases = ElementTree.parse(report).iter("testcase")
        return {
            f"{case.get('classname')}.{case.get('name')}": next(
                (each.tag for each in case if each.tag in ("skipped", "failure", "error")), "passed"
            )
            for case in cases
        }


def main() -> None:
    """Print the counts of both, and the tests that pass with eager alone."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path, help="a clone of the transformers that is installed")
    parser.add_argument("families", nargs="+", help="folders in tests/models")
    given, options = parser.parse_known_args()
    implementations = ("eager", "custom_pypto")
    for family in given.families:
        eager, ours = (run(given.checkout, family, each, options) for each in implementations)
        print(
            f"{family}: eager {dict(Counter(eager.values()))}, ours {dict(Counter(ours.values()))}"
        )
        for name, result in ours.items():
            if eager.get(name) == "passed" and result != "passed":
                print(f"  {result}: {name}")


if __name__ == "__main__":
    main()
