"""A cell of the tables: so many requests with so many tokens each."""

from __future__ import annotations

import argparse
import re
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
        found = re.fullmatch(r"([1-9]\d*)x([1-9]\d*)", text)
        if found is None:
            raise argparse.ArgumentTypeError(f"{text!r} is no REQUESTSxTOKENS, such as 16x4096")
        return cls(int(found[1]), int(found[2]))


ONE_AT_16K, SIXTEEN_AT_16K = Cell(1, 16384), Cell(16, 16384)
DECODES = [Cell(requests, 2**power) for requests in (1, 16) for power in (12, 14, 16, 17)]
PREFILLS = [Cell(1, 4096), ONE_AT_16K]
