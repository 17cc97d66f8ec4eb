"""Whether a build takes the text of an ops.toml that a command writes."""

from __future__ import annotations

from custom_pypto_contract import ops_file

from custom_pypto_build.errors import BuildError

from . import header_text


def find_refusal(document: str) -> str | None:
    """Return what is wrong with the text of an ops.toml; None if nothing is."""
    try:
        header_text(ops_file.read_document(ops_file.parse_toml(document)))
    except (BuildError, ValueError) as error:
        return str(error).removeprefix(f"{ops_file.FILE_NAME}: ")
    except RecursionError:
        return "a value is nested too deeply"
    return None
