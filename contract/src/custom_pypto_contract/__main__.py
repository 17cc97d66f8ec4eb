"""``python -m custom_pypto_contract [ops.toml]``: check the file, and describe its ops."""

from __future__ import annotations

import sys
from pathlib import Path

from . import ops_file
from .description import describe
from .errors import ContractError


def main(arguments: list[str]) -> str | None:
    """Print what the file says; return the text of an error."""
    try:
        file = ops_file.read(Path(arguments[0] if arguments else ops_file.FILE_NAME))
    except ContractError as error:
        return f"error: {error}"
    print("\n\n".join(map(describe, file.ops)))
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
