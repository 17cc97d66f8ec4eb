"""Checks what must be installed, and says how to install it."""

from __future__ import annotations

import importlib
import importlib.metadata

from custom_pypto.core import ops
from packaging.version import Version

OPS = {
    "npu_lightning_indexer_pto": "custom-pypto-lightning-indexer",
    "npu_sparse_flash_attention": "custom-pypto-sparse-attention",
}
# The first release with classes that are served.
MINIMUM = "5.15.1"
# The newest that was tested.
TESTED = "5.24.0"


def check_requirements() -> None:
    """Check that the models can run.

    Raises:
        ImportError: an op is missing, transformers is missing or too old, or torch_npu cannot be
            imported. The text says what to do.
    """
    loaded = {op.name for op in ops()}
    missing = sorted({wheel for op, wheel in OPS.items() if op not in loaded})
    if missing:
        raise ImportError(
            "custom_pypto_transformers: the ops of these wheels are missing; install them, or see"
            f" `custom-pypto list` for why they did not load: pip install {' '.join(missing)}"
        )
    try:
        version = importlib.metadata.version("transformers")
    except importlib.metadata.PackageNotFoundError:
        raise ImportError(
            "custom_pypto_transformers: transformers is not installed:"
            f" pip install 'transformers>={MINIMUM}'"
        ) from None
    if Version(version) < Version(MINIMUM):
        raise ImportError(
            f"custom_pypto_transformers: transformers {version} is too old for its sparse attention"
            f" models, {MINIMUM} is the first that works: pip install 'transformers>={MINIMUM}'"
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


def unknown_layout(error: Exception) -> ImportError:
    """Make the error for a transformers, perhaps a later one, that lacks what we extend."""
    return ImportError(
        f"custom_pypto_transformers: transformers {importlib.metadata.version('transformers')} is"
        f" laid out differently from {TESTED}, with which this was tested ({error}):"
        f" pip install 'transformers<={TESTED}'"
    )
