"""Registers the converters of the plugins with torchair, once torchair is imported.

torchair comes in torch_npu as the package ``torch_npu.dynamo.torchair``; importing torch_npu puts a
stand-in called ``torchair`` into `sys.modules`, which imports that package on first use. Importing
torchair is slow and needs CANN, so core neither imports it nor touches the stand-in: it waits for
the package, under either name, by `AfterImport`. If torchair imports core, or another thread is
importing torchair, the converters are registered when an op or the records are next looked up.
"""

from __future__ import annotations

import os
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any

from custom_pypto_discovery.printable import escape_lines

from custom_pypto.core.after_import import AfterImport
from custom_pypto.core.errors import PluginWarning, describe_failure, logger, warn
from custom_pypto.core.namespace import find_overload

_PACKAGES = ("torchair", "torch_npu.dynamo.torchair")
_REGISTER = "register_fx_node_ge_converter"

Converters = Callable[[], Mapping[str, Callable[..., Any]]]


class Graph:
    """The converters that wait for torchair."""

    def __init__(self) -> None:
        self._waiting: OrderedDict[str, Converters] = OrderedDict()
        self._renew()
        os.register_at_fork(after_in_child=self._renew)
        self._imports = AfterImport(_PACKAGES, self.register)

    def _renew(self) -> None:
        self._registering = threading.Lock()

    def add(self, plugin: str, converters: Converters) -> None:
        """Take the converters that `converters` returns once torchair is imported.

        `converters` is called at once if torchair is imported already.
        """
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
        # Registering looks ops up, which calls this function again.
        if torchair is None or not self._registering.acquire(blocking=False):
            return
        try:
            while self._waiting:
                _register_one(torchair, *self._waiting.popitem(last=False))
        finally:
            self._registering.release()


def _register_one(torchair: ModuleType, plugin: str, converters: Converters) -> None:
    try:
        _register(torchair, converters())
        logger.debug("%s: converters registered with torchair", plugin)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        _warn(plugin, error)


def _register(torchair: ModuleType, converters: Mapping[str, Callable[..., Any]]) -> None:
    for op, converter in converters.items():
        getattr(torchair, _REGISTER)(find_overload(op))(converter)


def _warn(plugin: str, error: BaseException) -> None:
    text = escape_lines(
        f"the torchair converters of the plugin {plugin!r} were not registered, so its ops cannot"
        f" be compiled in torchair's graph engine: {describe_failure(error)}"
    )
    logger.debug("%s", text, exc_info=error)
    try:
        warn(text)
    except PluginWarning:
        # Warnings are errors. This runs inside `import torchair`, which must not fail.
        logger.error("%s", text)


def _torchair() -> ModuleType | None:
    return next(_find_imported(), None)


def _find_imported() -> Iterator[ModuleType]:
    for name in _PACKAGES:
        module = sys.modules.get(name)
        # Not getattr, which would make torch_npu's stand-in, no module, import torchair.
        # A torchair that is being imported may lack the function.
        if isinstance(module, ModuleType) and _REGISTER in vars(module):
            yield module
