"""What must be installed, and what to type where it is not."""

from __future__ import annotations

import importlib.metadata
import importlib.util

from custom_pypto.core import ops

OPS = {
    "npu_lightning_indexer_pto": "custom-pypto-lightning-indexer",
    "npu_sparse_flash_attention": "custom-pypto-sparse-attention",
}
# The first release whose classes are served.
MINIMUM = (5, 15, 1)
# The first that makes a model with registered classes without importing every image processor.
WITHOUT_TORCHVISION = (5, 21, 0)


def check_requirements() -> None:
    """Refuse to be imported where the models could not run.

    Raises:
        ImportError: an op or a transformers that is new enough is missing; it says what to install.
    """
    loaded = {op.name for op in ops()}
    missing = sorted({wheel for op, wheel in OPS.items() if op not in loaded})
    if missing:
        raise ImportError(
            "custom_pypto_transformers: the ops of these wheels are not there, install them or see"
            f" `custom-pypto list` for why they did not load: pip install {' '.join(missing)}"
        )
    wanted = ".".join(map(str, MINIMUM))
    try:
        version = importlib.metadata.version("transformers")
    except importlib.metadata.PackageNotFoundError:
        raise ImportError(
            "custom_pypto_transformers: transformers is not installed:"
            f" pip install 'transformers>={wanted}'"
        ) from None
    if _release(version) < MINIMUM:
        raise ImportError(
            f"custom_pypto_transformers: transformers {version} is too old for its sparse attention"
            f" models, {wanted} is the first that works: pip install 'transformers>={wanted}'"
        )
    if _release(version) < WITHOUT_TORCHVISION and not importlib.util.find_spec("torchvision"):
        wanted = ".".join(map(str, WITHOUT_TORCHVISION))
        raise ImportError(
            f"custom_pypto_transformers: transformers {version} makes no model with registered"
            f" classes where torchvision is missing: pip install 'transformers>={wanted}', or"
            " torchvision"
        )


def _release(version: str) -> tuple[int, ...]:
    """The leading numbers of a version: (5, 16, 0) of '5.16.0.dev0'."""
    numbers = []
    for part in version.split(".")[:3]:
        digits = "".join(character for character in part if character.isdigit())
        numbers.append(int(digits or 0))
    return tuple(numbers)
