"""Runs functions on NPUs, one after another, as the parent asks: the process's end of worker.py."""

import importlib
import json
import socket
import traceback
import warnings
from typing import Any

from torch._dynamo import guards

EXPECTED = (
    "infer and generate sym shape failed.*custom_pypto.npu_sparse_attention_pto.*'NoneType' object"
)
"""torchair's warning about a converter that casts a tensor which is no argument, next to a type
that torchair has no function for. torchair then writes no shape rule into the nodes; CANN's types
have their own."""


def serve(parent: socket.socket) -> None:
    """Answer requests until there are no more."""
    warnings.filterwarnings("ignore")
    warnings.filterwarnings("error", module=r"(torch_npu\.dynamo\.)?torchair\.")
    warnings.filterwarnings("ignore", EXPECTED)
    # Dynamo would time each graph's guards with cold caches, for its log: a tenth of all time.
    vars(guards)["profile_guard_manager"] = lambda *_: 0.0
    lines = parent.makefile("rw", encoding="utf-8")
    for line in lines:
        request = json.loads(line)
        answer: dict[str, Any] = {"error": "", "value": None}
        try:
            module, _, name = request["function"].partition(".")
            function = getattr(importlib.import_module(f"scenarios.{module}"), name)
            answer["value"] = function(*request["arguments"])
        except BaseException:
            answer["error"] = traceback.format_exc()
        lines.write(json.dumps(answer) + "\n")
        lines.flush()
