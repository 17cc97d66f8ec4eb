"""A cell: a forward pass of a model by one implementation of its attention; and what it costs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from benchmarks import process_memory

Phase = Literal["decode", "prefill"]

# Longer prompts are estimated from this one before they run.
SHORT_PROMPT = 1024
PROMPT = 4096
CONTEXTS = (4096, 16384, 65536, 131072)
# Several sequences share the weights that a step reads.
BATCH = 8
BATCH_CONTEXT = 16384
# For one pass; each cell takes three or more.
LONGEST_SECONDS = 150.0
# Other programs of the machine keep this much.
_SPARE_BYTES = 2**30


class Way(NamedTuple):
    """An attn_implementation, and whether the cache is a GrowingCache."""

    implementation: str
    grows: bool = False

    @property
    def name(self) -> str:
        """The name in tables and pictures."""
        return "GrowingCache" if self.grows else self.implementation

    @property
    def is_ours(self) -> bool:
        """Whether our ops run."""
        return self.implementation == "custom_pypto"


EAGER, SDPA, DYNAMIC, GROWING = WAYS = (
    Way("eager"),
    Way("sdpa"),
    Way("custom_pypto"),
    Way("custom_pypto", grows=True),
)


class Cell(NamedTuple):
    """One token after `context - 1` cached ones, or a prompt of `context` tokens."""

    phase: Phase
    context: int
    batch: int = 1

    @property
    def name(self) -> str:
        """The name in tables."""
        length = f"{self.context // 1024}K" if self.context >= 1024 else f"{self.context}"
        return f"{self.phase} {length}" + (f" x {self.batch}" if self.batch > 1 else "")


@dataclass(frozen=True)
class Cost:
    """The seconds and bytes that a cell took."""

    cell: Cell
    seconds: float
    bytes: int

    def refusal(
        self, larger: Cell, available: Callable[[], int] = process_memory.available
    ) -> str | None:
        """Return why a larger cell of the same phase must not run; None: it may."""
        # PyTorch's time and memory grow at most with this power of the context.
        exponent = 2 if larger.phase == "prefill" else 1
        tokens = (larger.context / self.cell.context) ** exponent
        factor = tokens * larger.batch / self.cell.batch
        needed = factor * self.bytes
        if needed > available() - _SPARE_BYTES:
            return f"needs {needed / 2**30:.0f} GiB"
        if factor * self.seconds > LONGEST_SECONDS:
            return f"takes {factor * self.seconds / 60:.0f} min"
        return None


@dataclass(frozen=True)
class Job:
    """The task of a worker."""

    model: str
    way: Way
    cells: list[Cell]
    dtype: str
    quick: bool
    threads: int


@dataclass(frozen=True)
class Measured:
    """The results of a cell; None: not measured."""

    model: str
    way: Way
    cell: Cell
    seconds: float | None = None
    peak: int | None = None
    """Bytes that the pass needs at its peak beside weights and caches."""
    left_out: str | None = None
    """Why it was not run."""
    parts: dict[str, float] | None = None
    """Seconds by part of a decode step of ours."""
    logits: tuple[float, ...] = ()
    """The last token's."""


def cells(contexts: list[int], prompts: list[int], *, with_batch: bool) -> list[Cell]:
    """Return the cells of a run, the cheaper of each phase first."""
    decoded = [Cell("decode", context) for context in sorted(contexts)]
    batched = [Cell("decode", BATCH_CONTEXT, BATCH)] if with_batch else []
    return [*decoded, *batched, *(Cell("prefill", prompt) for prompt in sorted(prompts))]
