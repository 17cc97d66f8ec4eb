"""A software bill of materials in a wheel (PEP 770), in the JSON of CycloneDX.

It says what METADATA says: the distribution, its licence and its requirements. It has neither a
date nor a serial number, so that the same sources give the same wheel.
"""

from __future__ import annotations

import json
import re
from email.message import Message
from email.parser import HeaderParser
from pathlib import Path
from typing import Any

FILE_NAME = "sboms/custom-pypto-build.cdx.json"
"""Where it is in the folder ``.dist-info``."""
_REQUIREMENT = re.compile(r"[A-Za-z0-9._-]+")


def write(dist_info: Path) -> None:
    """Write the bill of the distribution whose METADATA is in the folder `dist_info`."""
    metadata = HeaderParser().parsestr((dist_info / "METADATA").read_text(encoding="utf-8"))
    path = dist_info / FILE_NAME
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(describe(metadata), indent=2) + "\n", encoding="utf-8")


def describe(metadata: Message) -> dict[str, Any]:
    """Return the bill of the distribution with these headers of METADATA."""
    component = _component(metadata["Name"], metadata["Version"])
    if licence := metadata["License-Expression"]:
        component["licenses"] = [{"expression": licence}]
    needed = dict(
        _requirement(text) for text in sorted(metadata.get_all("Requires-Dist", []), reverse=True)
    )
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": component},
        "components": list(needed.values()),
        "dependencies": [{"ref": component["bom-ref"], "dependsOn": list(needed)}],
    }


def _requirement(text: str) -> tuple[str, dict[str, Any]]:
    found = _REQUIREMENT.match(text)
    assert found is not None, text
    component = _component(found[0])
    component["scope"] = "optional" if re.search(r";.*\bextra\b", text) else "required"
    component["properties"] = [{"name": "python:requirement", "value": text}]
    return component["bom-ref"], component


def _component(name: str, version: str | None = None) -> dict[str, Any]:
    url = f"pkg:pypi/{re.sub(r'[-_.]+', '-', name).lower()}"
    if version is not None:
        url += f"@{version.replace('+', '%2B').replace('!', '%21')}"
    described = {} if version is None else {"version": version}
    return {"type": "library", "bom-ref": url, "name": name, **described, "purl": url}
