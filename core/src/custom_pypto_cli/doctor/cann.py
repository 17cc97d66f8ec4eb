"""CANN's environment variables."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from custom_pypto_discovery import distributions

from custom_pypto_cli.doctor import DoctorContext
from custom_pypto_cli.report import Check

FOLDERS = ("ASCEND_HOME_PATH", "ASCEND_OPP_PATH", "ASCEND_CUSTOM_OPP_PATH")


def checks(context: DoctorContext) -> Iterator[Check]:
    """Look at the variables that name CANN's folders."""
    del context
    for name in FOLDERS:
        value = os.environ.get(name, "")
        check = Check(name, value or "not set")
        missing = [each for each in value.split(os.pathsep) if each and not Path(each).is_dir()]
        if missing:
            check = check.with_problem(
                f"{name} names {', '.join(missing)}, which is not there",
                f"correct {name}, or unset it; `source <CANN folder>/set_env.sh` sets it",
            )
        elif not value and name == FOLDERS[0] and distributions.version("torch_npu") is not None:
            check = check.with_note(
                "torch_npu is installed, but CANN's environment is not set",
                "run `source <CANN folder>/set_env.sh` before using an NPU",
            )
        yield check
