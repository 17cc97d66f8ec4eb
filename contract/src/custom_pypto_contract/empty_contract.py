"""The normalised data of a contract that has no more than a schema.

It stands apart from the notation because core reads manifests, and nothing else, while it is
imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

EMPTY_CONTRACT: Mapping[str, Any] = {
    "summary": "",
    "definition": "",
    "tensors": [],
    "rules": [],
    "outputs": None,
    "descriptions": {},
    "groups": {},
    "templates": {},
    "npu": {"limits": {}, "supports": {}, "launch": [], "graph": []},
}
