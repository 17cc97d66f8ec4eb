"""Says what to do when torch cannot be imported."""

from __future__ import annotations

import sys

from custom_pypto_contract.abi import OLDEST_TORCH


def explain_import_error(error: Exception) -> ImportError:
    """Return the error to raise instead of `error`, which importing torch raised."""
    if isinstance(error, ModuleNotFoundError) and error.name == "torch":
        reason = (
            f"custom_pypto.core needs PyTorch {OLDEST_TORCH} or newer, which is not installed;"
            f" install it: pip install 'torch>={OLDEST_TORCH}'"
        )
    else:
        reason = (
            "custom_pypto.core needs PyTorch, but importing torch failed:"
            f" {type(error).__name__}: {str(error).rstrip('.')}"
        )
    advice = []
    if "backend extension: torch_npu" in str(error):
        sourced = "where there is CANN, run `source <CANN folder>/set_env.sh` first"
        advice.append(f"torch_npu needs CANN: {sourced}")
    # The command line gives its own advice, and the doctor must not point to itself.
    if "custom_pypto_cli" not in sys.modules:
        advice.append("`custom-pypto doctor` says what else is wrong with this installation")
    return ImportError("; ".join([reason, *advice]), name="torch")
