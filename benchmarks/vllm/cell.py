"""A cell of the tables: so many requests with so many tokens each; and what was measured of it."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


class Cell(NamedTuple):
    """Requests, and the tokens of each: cached before a step, or of a prompt."""

    requests: int
    tokens: int

    @property
    def name(self) -> str:
        """The name in tables."""
        return f"{self.requests} x {self.tokens}"

    @classmethod
    def parse(cls, text: str) -> Cell:
        """Read a cell such as 16x4096. Raises argparse.ArgumentTypeError."""
        found = re.fullmatch(r"(\d+)x(\d+)", text)
        if found is None or "0" in found.groups():
            raise argparse.ArgumentTypeError(f"{text!r} is no REQUESTSxTOKENS, such as 16x4096")
        return cls(int(found[1]), int(found[2]))


ONE_AT_16K, SIXTEEN_AT_16K = Cell(1, 16384), Cell(16, 16384)
DECODES = [Cell(requests, 2**power) for requests in (1, 16) for power in (12, 14, 16, 17)]
PREFILLS = [Cell(1, 4096), ONE_AT_16K]


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

    def layer_ratio(self, cell: Cell) -> float | None:
        """Return how many times longer dense attention takes than our indexer and attention."""
        times = self.layer[cell]
        ours = times["write"] + times["indexer"] + times["attention"]
        return times["dense"] / ours if "dense" in times else None

    def step_ratio(self, cell: Cell) -> float | None:
        """Return how many times longer a step with dense attention takes."""
        times = self.steps[cell]
        return times["dense"] / times["ours"] if "dense" in times else None

    def to_json(self) -> dict[str, object]:
        """Return everything that was measured."""
        tables: dict[str, Mapping[Cell, object]] = {
            "layer": self.layer,
            "overlap": self.overlap,
            "steps": self.steps,
            "parts": self.parts,
            "prefills": self.prefills,
        }
        by_name = {
            name: {cell.name: values for cell, values in table.items()}
            for name, table in tables.items()
        }
        return {"machine": self.machine, "unit": "seconds", **by_name}


class Prefill(NamedTuple):
    """What reading prompts takes; seconds are None where it needs more memory than is free."""

    seconds: float | None
    memory: float | None
    """Bytes at the peak, beside weights and caches."""
