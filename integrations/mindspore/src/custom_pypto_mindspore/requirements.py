"""Checks what must be installed, and says how to install it."""

from __future__ import annotations

import importlib.metadata

from packaging.version import Version

# The first that was tested, and the newest.
MINIMUM = "2.10.0"


def check_requirements() -> None:
    """Check that the ops can run.

    Raises:
        ImportError: MindSpore is missing or too old; it says what to install.
    """
    try:
        version = importlib.metadata.version("mindspore")
    except importlib.metadata.PackageNotFoundError:
        raise ImportError(
            "custom_pypto_mindspore: mindspore is not installed:"
            f" pip install 'mindspore>={MINIMUM}'"
        ) from None
    if Version(version) < Version(MINIMUM):
        raise ImportError(
            f"custom_pypto_mindspore: mindspore {version} is too old to share memory,"
            f" {MINIMUM} is the first that was tested: pip install 'mindspore>={MINIMUM}'"
        )


def unknown_layout(error: Exception) -> ImportError:
    """Make the error for a MindSpore, perhaps a later one, that lacks what we build on."""
    return ImportError(
        f"custom_pypto_mindspore: mindspore {importlib.metadata.version('mindspore')} is laid out"
        f" differently from {MINIMUM}, with which this was tested ({error}):"
        f" pip install 'mindspore=={MINIMUM}'"
    )
