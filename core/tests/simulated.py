"""Runs code in new processes that have torch_npu imported already, under the simulator.

torch_npu reads its environment once, most of it when an NPU is first used: after the fork. Where it
finds kernels it reads while it is imported: that decides which server a process is forked from. The
servers are forked from one that has imported what torch_npu and torchair import of torch: that
takes most of the time.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from fork_server import ForkServer

AT_IMPORT = ("ASCEND_", "CUSTOM_PYPTO_PLUGINS")
"""The prefixes of the variables that torch_npu, or core, reads at import."""
_MOST_SERVERS = 3
_OF_TORCH = """
import custom_pypto_simulator, torch
import torch._functorch.aot_autograd, torch._inductor.pattern_matcher, torch.distributed.tensor
"""
_IMPORTS = """
import warnings
warnings.filterwarnings("ignore")  # torch_npu warns of the missing CANN
import {}
warnings.resetwarnings()
"""


class Simulated:
    """Servers with the same modules imported, for different machines."""

    def __init__(
        self, folder: Path, modules: Sequence[str] = (), path: Sequence[Path] = ()
    ) -> None:
        """`modules` are imported after torch_npu; `path` is the processes' PYTHONPATH."""
        self._imports = _IMPORTS.format(", ".join(("torch_npu", *modules)))
        variables = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
        if cache := os.environ.get("CUSTOM_PYPTO_SIM_CACHE"):
            variables["CUSTOM_PYPTO_SIM_CACHE"] = cache
        self._base = ForkServer(path, folder, options=(), imports=_OF_TORCH, variables=variables)
        self._servers: dict[tuple[tuple[str, str], ...], ForkServer] = {}

    def server(self, variables: Mapping[str, str]) -> ForkServer:
        """The server of processes with these variables; it is started at most once."""
        key = tuple(item for item in variables.items() if item[0].startswith(AT_IMPORT))
        server = self._servers.pop(key, None)
        if server is None:
            if len(self._servers) == _MOST_SERVERS:
                self._servers.pop(next(iter(self._servers))).close()
            server = self._base.fork(self._imports, dict(key))
        self._servers[key] = server
        return server

    def close(self) -> None:
        """End every server."""
        for server in (*self._servers.values(), self._base):
            server.close()
