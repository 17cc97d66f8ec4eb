"""The bill of materials in a wheel."""

from __future__ import annotations

import json
from email.message import Message
from pathlib import Path
from typing import Any

from build_project import tiny_project
from custom_pypto_build import sbom


def described(*requirements: str) -> dict[str, Any]:
    """Return the bill of a distribution with these requirements."""
    metadata = Message()
    metadata["Name"], metadata["Version"] = "Tiny_Op", "1.0+local"
    metadata["License-Expression"] = "Apache-2.0"
    for each in requirements:
        metadata["Requires-Dist"] = each
    return sbom.describe(metadata)


def test_a_wheel_holds_one(tmp_path: Path) -> None:
    wheel = tiny_project(tmp_path, "").wheel()
    text = wheel.files[f"custom_pypto_tiny-0.3.0.dist-info/{sbom.FILE_NAME}"]
    assert json.loads(text)["metadata"]["component"]["purl"] == "pkg:pypi/custom-pypto-tiny@0.3.0"


def test_names_the_distribution_and_its_licence() -> None:
    assert described()["metadata"]["component"] == {
        "type": "library",
        "bom-ref": "pkg:pypi/tiny-op@1.0%2Blocal",
        "name": "Tiny_Op",
        "version": "1.0+local",
        "purl": "pkg:pypi/tiny-op@1.0%2Blocal",
        "licenses": [{"expression": "Apache-2.0"}],
    }


def test_names_each_requirement_once() -> None:
    bill = described("torch>=2.10", 'Numpy>=1; extra == "test"', "torch<3")
    assert [(each["purl"], each["scope"]) for each in bill["components"]] == [
        ("pkg:pypi/torch", "required"),
        ("pkg:pypi/numpy", "optional"),
    ]
    assert bill["dependencies"] == [
        {
            "ref": "pkg:pypi/tiny-op@1.0%2Blocal",
            "dependsOn": ["pkg:pypi/torch", "pkg:pypi/numpy"],
        }
    ]


def test_says_a_requirement_as_metadata_does() -> None:
    [component] = described("torch>=2.10")["components"]
    assert component["properties"] == [{"name": "python:requirement", "value": "torch>=2.10"}]
