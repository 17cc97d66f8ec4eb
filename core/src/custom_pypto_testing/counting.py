"""A torch.compile backend that counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._dynamo import lookup_backend
from torch._ops import OpOverload


class CountingBackend:
    """Compiles with another backend, keeps the graphs and counts their runs."""

    def __init__(self, backend: str) -> None:
        """Compile with the torch.compile backend named `backend`."""
        self.graphs: list[torch.fx.GraphModule] = []
        self.runs = 0
        self._compile = lookup_backend(backend)

    def __call__(
        self, graph: torch.fx.GraphModule, inputs: list[torch.Tensor], **options: Any
    ) -> Callable[..., Any]:
        """Compile `graph`: what torch.compile calls."""
        compiled = self._compile(graph, inputs, **options)
        # Not earlier: torch starts again, by an exception, when it makes a number a constant.
        self.graphs.append(graph)

        def run(*args: Any) -> Any:
            self.runs += 1
            return compiled(*args)

        return run

    def calls_of(self, op: OpOverload[..., Any]) -> int:
        """How often `op` occurs in the graphs."""
        targets = (op, op.overloadpacket)
        return sum(node.target in targets for graph in self.graphs for node in graph.graph.nodes)
