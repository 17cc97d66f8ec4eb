"""Checks what pip cannot: that the ops and torch_npu load, and what transformers has."""

from __future__ import annotations

import importlib

import custom_pypto.core  # noqa: F401  (makes the ops)
import torch

OPS = ("npu_lightning_indexer_pto", "npu_sparse_flash_attention")
# The first release with classes that are served, as in the wheel's metadata, and the newest that
# was tested.
MINIMUM, TESTED = "5.15.1", "5.24.0"
INSTALL = f"pip install 'transformers>={MINIMUM},<={TESTED}'"


def check_requirements() -> None:
    """Check that the ops can be called.

    Raises:
        ImportError: an op is missing, or torch_npu cannot be imported. The text says what to do.
    """
    for op in OPS:
        try:
            getattr(torch.ops.custom_pypto, op)
        except AttributeError as error:
            raise ImportError(f"custom_pypto_transformers: {error}") from None
    try:
        importlib.import_module("torch_npu")  # as transformers does where it is installed
    except ImportError as error:
        if error.name != "torch_npu":
            raise ImportError(
                "custom_pypto_transformers: transformers imports torch_npu, which is installed but"
                f" cannot be imported ({error}): source CANN's set_env.sh, or"
                " pip uninstall torch_npu"
            ) from error
