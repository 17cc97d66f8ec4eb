"""Checks what pip cannot: that the ops and torch_npu load, and what transformers has."""

from __future__ import annotations

import importlib
import importlib.metadata

import custom_pypto.core  # noqa: F401  (makes the ops)
import torch
from packaging.version import Version

OPS = (
    "npu_lightning_indexer_pto",
    "npu_lightning_indexer_v2",
    "npu_mhc_post",
    "npu_mhc_pre",
    "npu_mhc_sinkhorn",
    "npu_sparse_flash_attention",
    "npu_sparse_flash_mla",
)
# The first release with classes that are served, as in the wheel's metadata, and the newest that
# was tested.
MINIMUM, TESTED = "5.15.1", "5.24.0"
INSTALL = f"pip install 'transformers>={MINIMUM},<={TESTED}'"


def check_requirements() -> None:
    """Check that the models can run.

    Raises:
        ImportError: ops are missing, transformers is missing or too old, or torch_npu cannot be
            imported. The text says what to do.
    """
    missing = []
    for op in OPS:
        try:
            getattr(torch.ops.custom_pypto, op)
        except AttributeError as error:
            missing.append(str(error))
    if missing:
        raise ImportError(f"custom_pypto_transformers: {'; '.join(missing)}")
    try:
        version = importlib.metadata.version("transformers")
    except importlib.metadata.PackageNotFoundError:
        raise ImportError(
            f"custom_pypto_transformers: transformers is not installed: {INSTALL}"
        ) from None
    if Version(version) < Version(MINIMUM):
        raise ImportError(
            f"custom_pypto_transformers: transformers {version} is too old, {MINIMUM} is the first"
            f" with the models that are served: {INSTALL}"
        )
    try:
        importlib.import_module("torch_npu")  # as transformers does where it is installed
    except ImportError as error:
        if error.name != "torch_npu":
            raise ImportError(
                "custom_pypto_transformers: transformers imports torch_npu, which is installed but"
                f" cannot be imported ({error}): source CANN's set_env.sh, or"
                " pip uninstall torch_npu"
            ) from error
