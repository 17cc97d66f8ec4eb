"""The results of a run: the measured cells, and the ratios between them."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

import torch

from benchmarks.transformers.cell import WAYS, Cell, Measured, Way
from benchmarks.transformers.parts import OURS

EAGER, SDPA, DYNAMIC, GROWING = WAYS


@dataclass
class Results:
    """The measured cells of all models and ways."""

    machine: dict[str, str | int]
    reading: float
    """Bytes per second that the machine reads from memory."""
    weight_bytes: dict[str, int] = field(default_factory=dict)
    """By model: bytes of weights that a step reads."""
    measured: list[Measured] = field(default_factory=list)

    def find(self, model: str, way: Way, cell: Cell) -> Measured | None:
        """Return what was measured of a cell; None if its process ended before."""
        key = (model, way, cell)
        return next((m for m in self.measured if (m.model, m.way, m.cell) == key), None)

    def seconds(self, model: str, way: Way, cell: Cell) -> float | None:
        """Return the median time of a cell; None if it was left out."""
        found = self.find(model, way, cell)
        return None if found is None else found.seconds

    def ratio(self, model: str, way: Way, ours: Way, cell: Cell) -> float | None:
        """Return how many times longer than ours another way takes; None: one was left out."""
        theirs, seconds = self.seconds(model, way, cell), self.seconds(model, ours, cell)
        return theirs / seconds if theirs and seconds else None

    def logits_error(self, model: str, cell: Cell) -> float | None:
        """Return the relative L2 distance of our logits from sdpa's, or else from eager's."""
        ours = self.find(model, DYNAMIC, cell)
        for way in (SDPA, EAGER):
            theirs = self.find(model, way, cell)
            if ours and theirs and ours.logits and theirs.logits:
                expected = torch.tensor(theirs.logits)
                return float((torch.tensor(ours.logits) - expected).norm() / expected.norm())
        return None

    def parts(self, model: str, way: Way) -> dict[Cell, dict[str, float]]:
        """Return the parts of a decode step by cell."""
        found = (m for m in self.measured if (m.model, m.way) == (model, way))
        return {m.cell: m.parts for m in found if m.parts is not None}

    def floor(self, model: str) -> float:
        """Return the seconds that reading the weights of the projections takes at the peak."""
        return self.weight_bytes[model] / self.reading

    def to_json(self, goals: list[dict[str, Any]]) -> str:
        """Return everything, times in seconds, sizes in bytes."""
        rows = []
        for m in self.measured:
            row = asdict(m) | {"way": m.way.name, **m.cell._asdict()}
            del row["cell"], row["logits"]
            if m.way == DYNAMIC:
                row["logits_error"] = self.logits_error(m.model, m.cell)
            rows.append(row)
        document = {
            "machine": self.machine,
            "reading": self.reading,
            "weight_bytes": self.weight_bytes,
            "results": rows,
            "goals": goals,
        }
        return json.dumps(document, indent=2)


def outside(parts: dict[str, float]) -> float:
    """Return the seconds of a step outside our ops."""
    return sum(seconds for part, seconds in parts.items() if part not in OURS)
