"""Registers the converters of the plugins with torchair, once torchair is imported.

torchair comes in torch_npu as the package ``torch_npu.dynamo.torchair``; importing torch_npu puts a
stand-in called ``torchair`` into `sys.modules`, which imports that package on first use. Importing
torchair is slow and needs CANN, so core neither imports it nor touches the stand-in: it waits for
the package, under either name, by `AfterImport`. If torchair imports core, or another thread is
importing torchair, the converters are registered when an op or the records are next looked up.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from custom_pypto.core.after_import import AfterImport
from custom_pypto.core.errors import describe_failure, logger, warn_or_log
from custom_pypto.core.namespace import find_overload

_PACKAGES = ("torchair", "torch_npu.dynamo.torchair")
_REGISTER = "register_fx_node_ge_converter"

Converters = Callable[[], Mapping[str, Callable[..., Any]]]


class Graph:
    """The converters that wait for torchair."""

    def __init__(self) -> None:
        self._waiting: dict[str, Converters] = {}
        self._imports = AfterImport(_PACKAGES, self.register)

    def add(self, plugin: str, converters: Converters) -> None:
        """Register what `converters` returns, once torchair is imported. Failures give warnings."""
        self._waiting[plugin] = converters
        if _torchair() is None:
            self._imports.watch()
        else:
            self.register()

    def remove(self, plugin: str) -> None:
        """Forget a plugin whose converters have not been registered yet."""
        self._waiting.pop(plugin, None)

    def register(self) -> None:
        """Register the waiting converters if torchair is there. Failures give warnings."""
        torchair = _torchair() if self._waiting else None
        if torchair is None:
            return
        for plugin in list(self._waiting):
            # Another thread may have taken it, or this one: registering looks ops up.
            converters = self._waiting.pop(plugin, None)
            if converters is not None:
                _register_one(torchair, plugin, converters)


def _register_one(torchair: ModuleType, plugin: str, converters: Converters) -> None:
    try:
        for op, converter in converters().items():
            getattr(torchair, _REGISTER)(find_overload(op))(converter)
        logger.debug("%s: converters registered with torchair", plugin)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        logger.debug("%s: converters failed", plugin, exc_info=error)
        # This runs inside `import torchair`, which must not fail.
        warn_or_log(
            f"the torchair converters of the plugin {plugin!r} were not registered, so its ops"
            f" cannot be compiled in torchair's graph engine: {describe_failure(error)}"
        )


def _torchair() -> ModuleType | None:
    for name in _PACKAGES:
        module = sys.modules.get(name)
        # Not getattr, which would make torch_npu's stand-in, no module, import torchair.
        # A torchair that is being imported may lack the function.
        if isinstance(module, ModuleType) and _REGISTER in vars(module):
            return module
    return None
