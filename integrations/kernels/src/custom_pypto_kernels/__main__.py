"""``python -m custom_pypto_kernels WHEEL FOLDER``."""

from __future__ import annotations

import argparse
from pathlib import Path

from .folder import write_folder


def main() -> None:
    """Write a folder as the command line says."""
    parser = argparse.ArgumentParser(
        prog="python -m custom_pypto_kernels",
        description="Write a folder that Hugging Face kernels loads, from the wheel of a plugin.",
    )
    parser.add_argument("wheel", type=Path, help="the wheel of a plugin")
    parser.add_argument("folder", type=Path, help="the folder to write; its variants are replaced")
    arguments = parser.parse_args()
    try:
        variants = write_folder(arguments.wheel, arguments.folder)
    except (OSError, ValueError) as error:
        parser.error(str(error))
    for variant in variants:
        print(variant)


if __name__ == "__main__":
    main()
