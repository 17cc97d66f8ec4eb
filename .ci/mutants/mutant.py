"""One break of one source file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Mutant:
    """The text from `start` to `end` of `file`, a path in the repository, becomes `text`."""

    file: Path
    start: int
    end: int
    text: str
    rule: str

    def apply(self, source: str) -> str:
        """Return the broken source."""
        return source[: self.start] + self.text + source[self.end :]

    def describe(self, source: str) -> str:
        """Return place, rule, and the line before and after."""
        number = source.count("\n", 0, self.start)
        broken = self.apply(source).splitlines()
        return (
            f"{self.file}:{number + 1} ({self.rule})\n"
            f"  - {source.splitlines()[number].strip()}\n  + {broken[number].strip()}"
        )
