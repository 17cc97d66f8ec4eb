"""Runs code in new processes that have torch_npu imported already, under the simulator.

torch_npu reads its environment once, most of it when an NPU is first used: after the fork. Where it
finds kernels it reads while it is imported: that decides which server a process is forked from.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from fork_server import ForkServer

AT_IMPORT = ("ASCEND_", "CUSTOM_PYPTO_PLUGINS")
"""The prefixes of the variables that torch_npu, or core, reads at import."""
_MOST_SERVERS = 3
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
        self._folder = folder
        self._imports = _IMPORTS.format(
            ", ".join(("custom_pypto_simulator", "torch", "torch_npu", *modules))
        )
        self._path = path
        self._servers: dict[tuple[tuple[str, str], ...], ForkServer] = {}

    def server(self, variables: Mapping[str, str]) -> ForkServer:
        """The server of processes with these variables; it is started at most once."""
        key = tuple(item for item in variables.items() if item[0].startswith(AT_IMPORT))
        server = self._servers.pop(key, None)
        if server is None:
            if len(self._servers) == _MOST_SERVERS:
                self._servers.pop(next(iter(self._servers))).close()
            cache = {
                name: value
                for name, value in os.environ.items()
                if name == "CUSTOM_PYPTO_SIM_CACHE"
            }
            server = ForkServer(
                self._path,
                self._folder,
                options=(),
                imports=self._imports,
                variables={**cache, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0", **dict(key)},
            )
        self._servers[key] = server
        return server

    def close(self) -> None:
        """End every server."""
        for server in self._servers.values():
            server.close()
        self._servers.clear()
