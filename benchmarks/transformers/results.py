"""The results of a run: the measured cells, and the ratios between them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import torch

from benchmarks.transformers.cell import DYNAMIC, EAGER, SDPA, Cell, Measured, Way
from benchmarks.transformers.parts import OURS


@dataclass
class Results:
    """The measured cells of all models and ways."""

    machine: dict[str, str | int]
    reading: float
    """Bytes per second that the machine reads from memory."""
    weight_bytes: dict[str, int] = field(default_factory=dict)
    """By model: bytes of weights that a step reads."""
    measured: list[Measured] = field(default_factory=list)

    def cells(self, model: str) -> list[Cell]:
        """Return the cells of a model in the order in which they were measured."""
        return list(dict.fromkeys(m.cell for m in self.measured if m.model == model))

    def find(self, model: str, way: Way, cell: Cell) -> Measured | None:
        """Return what was measured of a cell; None if its process ended before."""
        key = (model, way, cell)
        return next((m for m in self.measured if (m.model, m.way, m.cell) == key), None)

    def ratio(self, model: str, way: Way, ours: Way, cell: Cell) -> float | None:
        """Return how many times longer than ours another way takes; None: one was left out."""
        both = self.find(model, way, cell), self.find(model, ours, cell)
        theirs, seconds = (measured and measured.seconds for measured in both)
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

    def reading_weights(self, model: str) -> float:
        """Return the seconds that reading the weights of the projections takes at the peak."""
        return self.weight_bytes[model] / self.reading

    def floor(self, model: str, parts: dict[str, float]) -> float:
        """Return the seconds that a step with these parts needs for its weights and our ops."""
        return self.reading_weights(model) + sum(parts[part] for part in OURS)

    def to_json(self) -> dict[str, Any]:
        """Return everything but the goals, times in seconds, sizes in bytes."""
        rows = []
        for m in self.measured:
            row = asdict(m) | {"way": m.way.name, **m.cell._asdict()}
            del row["cell"], row["logits"]
            if m.way == DYNAMIC:
                row["logits_error"] = self.logits_error(m.model, m.cell)
            if m.parts is not None:
                row["floor"] = self.floor(m.model, m.parts)
            rows.append(row)
        return {
            "machine": self.machine,
            "reading": self.reading,
            "weight_bytes": self.weight_bytes,
            "results": rows,
        }
