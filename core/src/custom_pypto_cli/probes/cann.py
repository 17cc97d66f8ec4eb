"""CANN's environment variables."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from custom_pypto_cli import distribution
from custom_pypto_cli.probes.probe import Probe
from custom_pypto_cli.probes.trial import Trial

FOLDERS = ("ASCEND_HOME_PATH", "ASCEND_OPP_PATH", "ASCEND_CUSTOM_OPP_PATH")


def probes(trial: Trial) -> Iterator[Probe]:
    """Look at the variables that name CANN's folders."""
    del trial
    for name in FOLDERS:
        value = os.environ.get(name, "")
        probe = Probe(name, value or "not set")
        entries = [entry for entry in value.split(os.pathsep) if entry]
        missing = [entry for entry in entries if not Path(entry).is_dir()]
        if missing:
            probe = probe.with_problem(
                f"{name} names {', '.join(missing)}, which is not there",
                f"correct {name}, or unset it; `source <CANN folder>/set_env.sh` sets it",
            )
        elif not value and name == "ASCEND_HOME_PATH" and distribution.version("torch_npu"):
            probe = probe.with_note(
                "torch_npu is installed, but CANN's environment is not set",
                "run `source <CANN folder>/set_env.sh` before using an NPU",
            )
        yield probe
