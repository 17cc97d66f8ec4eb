"""Says what to do when torch cannot be imported."""

from __future__ import annotations

_DOCTOR = "`custom-pypto doctor` says what else is wrong with this installation"


def explained(error: Exception) -> ImportError:
    """Return the error to raise instead of `error`, which importing torch raised."""
    if isinstance(error, ModuleNotFoundError) and error.name == "torch":
        return ImportError(
            "custom_pypto.core needs PyTorch 2.10 or newer, which is not installed; install it:"
            f" pip install 'torch>=2.10'; {_DOCTOR}",
            name="torch",
        )
    return ImportError(
        "custom_pypto.core needs PyTorch, but importing torch failed:"
        f" {type(error).__name__}: {error}; {_DOCTOR}",
        name="torch",
    )
