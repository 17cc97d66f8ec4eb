"""The text that is decoded: one token per UTF-8 byte."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from pydoc_data import topics

import torch

from examples.program import ExampleError


@dataclass(frozen=True)
class Text:
    """A text as a loop of byte tokens, so that any context length can be read from it."""

    source: str
    data: bytes

    @classmethod
    def load(cls, path: Path | None = None) -> Text:
        """Read a file byte for byte; without one, the manual behind Python's `help()`.

        Raises ExampleError when it cannot be read or holds nothing.
        """
        if path is None:
            data = "\n".join(topics.topics.values()).encode()
            return cls("Python's manual (pydoc_data/topics.py)", data)
        try:
            data = path.read_bytes()
        except OSError as error:
            raise ExampleError(
                f"--text {path}: {error.strerror}; name a readable text file"
            ) from None
        if not data.strip():
            raise ExampleError(
                f"--text {path}: the file is empty; name a file that holds some text"
            )
        return cls(str(path), data)

    def tokens(self, start: int, count: int) -> torch.Tensor:
        """Return count tokens from position start on as int64; the text begins again at its end."""
        whole = torch.frombuffer(bytearray(self.data), dtype=torch.uint8)
        positions = torch.arange(start, start + count) % len(self.data)
        return whole[positions].long()
