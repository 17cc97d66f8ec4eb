"""What a run measured."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from benchmarks.vllm.cell import Cell


class Prefill(NamedTuple):
    """What reading prompts takes; seconds are None where it needs more memory than is free."""

    seconds: float | None
    memory: float | None
    """Bytes at the peak, beside weights and caches; None: unknown."""


@dataclass
class Results:
    """Medians in seconds, by cell."""

    machine: dict[str, str | int]
    layer: dict[Cell, dict[str, float]] = field(default_factory=dict)
    """The attention of a layer: dense, write, indexer, indexer int8, attention."""
    overlap: dict[Cell, float] = field(default_factory=dict)
    """Which share of the selected positions is selected from keys of 8 bits, too."""
    steps: dict[Cell, dict[str, float]] = field(default_factory=dict)
    """A step of the engine: dense, ours."""
    parts: dict[Cell, dict[str, float]] = field(default_factory=dict)
    """The parts of a step of ours."""
    prefills: dict[Cell, dict[str, Prefill]] = field(default_factory=dict)

    def layer_ours(self, cell: Cell) -> float:
        """Return the seconds of our attention of a layer."""
        return sum(self.layer[cell][part] for part in ("write", "indexer", "attention"))

    def layer_ratio(self, cell: Cell) -> float | None:
        """Return how many times longer dense attention takes."""
        dense = self.layer[cell].get("dense")
        return None if dense is None else dense / self.layer_ours(cell)

    def int8_ratio(self, cell: Cell) -> float:
        """Return how many times longer it takes to select from bf16 keys than from int8 keys."""
        return self.layer[cell]["indexer"] / self.layer[cell]["indexer int8"]

    def step_ratio(self, cell: Cell) -> float | None:
        """Return how many times longer a step with dense attention takes."""
        times = self.steps[cell]
        return times["dense"] / times["ours"] if "dense" in times else None

    def to_json(self) -> dict[str, object]:
        """Return everything that was measured: times in seconds, memory in bytes."""
        cells = dict.fromkeys((*self.layer, *self.steps, *self.prefills))
        return {"machine": self.machine, "cells": {cell.name: self._of(cell) for cell in cells}}

    def _of(self, cell: Cell) -> dict[str, object]:
        prefills = self.prefills.get(cell, {})
        return {
            "layer": self.layer.get(cell),
            "overlap": self.overlap.get(cell),
            "step": self.steps.get(cell),
            "parts": self.parts.get(cell),
            "prefill": {way: prefill._asdict() for way, prefill in prefills.items()},
        }
