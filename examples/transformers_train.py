"""Train a tiny DeepSeek-V3.2 on bytes, by the ops, with dense and with sparse attention.

Attention is dense first; then dense and sparse go on side by side from the same weights.
`tox -e transformers-train` builds and installs everything that it needs, and runs it.
"""

from __future__ import annotations

import argparse
import copy
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from custom_pypto_transformers import indexer_losses
from matplotlib.figure import Figure
from tqdm import tqdm

from examples import program
from examples.program import ExampleError
from examples.text import Text
from examples.transformers_model import build

RATE = 3e-3
BATCH = 8
# The number of losses that are averaged at either end of a curve.
WINDOW = 10
SIZES = {
    "vocab_size": 256,
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "q_lora_rank": 64,
    "kv_lora_rank": 32,
    "qk_nope_head_dim": 24,
    "qk_rope_head_dim": 8,
    "v_head_dim": 32,
    "index_n_heads": 8,
    "index_head_dim": 16,
}


@dataclass(frozen=True)
class Plan:
    """How long and how much is trained."""

    tokens: int
    top_k: int
    warm_up: int
    steps: int
    seed: int


@dataclass
class Curve:
    """The losses of the steps of one training: of the next byte, in nats, and of the indexers."""

    name: str
    first_step: int
    losses: list[float] = field(default_factory=list)
    indexer_losses: list[float] = field(default_factory=list)

    @property
    def start(self) -> float:
        """The mean loss of the first steps."""
        return fmean(self.losses[:WINDOW])

    @property
    def end(self) -> float:
        """The mean loss of the last steps."""
        return fmean(self.losses[-WINDOW:])


def train(text: Text, plan: Plan, progress: Callable[[], object]) -> list[Curve]:
    """Train; return the curves of the warm-up, of dense and of sparse attention after it.

    The indexers learn as DeepSeek's do: their loss is the divergence of their scores from the
    attention, and neither loss has gradients for the other's weights.
    """
    model = build(
        "deepseek_v32",
        SIZES | {"index_topk": plan.tokens},
        plan.seed,
        torch.float32,
        "custom_pypto",
        pad_token_id=0,
    ).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.01)
    warm_up = Curve("dense warm-up", 0)
    _run(model, optimizer, text, plan, warm_up, plan.warm_up, progress)
    curves = [warm_up]
    for name, top_k in (("dense", plan.tokens), (f"sparse, {plan.top_k} keys", plan.top_k)):
        # Both go on from the same weights and the same state of the optimizer.
        other = copy.deepcopy(model)
        other.config.index_topk = top_k
        for layer in other.model.layers:
            layer.self_attn.indexer.index_topk = top_k
        follower = torch.optim.AdamW(other.parameters(), lr=RATE, weight_decay=0.01)
        follower.load_state_dict(copy.deepcopy(optimizer.state_dict()))
        curve = Curve(name, plan.warm_up)
        _run(other, follower, text, plan, curve, plan.steps, progress)
        curves.append(curve)
    return curves


def _run(
    model: Any,
    optimizer: torch.optim.Optimizer,
    text: Text,
    plan: Plan,
    curve: Curve,
    steps: int,
    progress: Callable[[], object],
) -> None:
    with indexer_losses(model) as indexers:
        for step in range(curve.first_step, curve.first_step + steps):
            batch = _batch(text, plan, step)
            loss = model(batch, labels=batch, use_cache=False).loss
            divergence = indexers.total()
            optimizer.zero_grad()
            (loss + divergence).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            curve.losses.append(loss.item())
            curve.indexer_losses.append(divergence.item())
            progress()


def _batch(text: Text, plan: Plan, step: int) -> torch.Tensor:
    """Pieces of the text at random places, the same ones for the same step."""
    generator = torch.Generator().manual_seed(plan.seed * 1_000_003 + step)
    places = torch.randint(len(text.data), (BATCH,), generator=generator).tolist()
    return torch.stack([text.tokens(place, plan.tokens) for place in places])


def main(arguments: list[str] | None = None) -> int:
    """Run the example; return the process's exit status."""
    parser = program.make_parser("transformers_train", __doc__, "transformers_train.png")
    program.add_number(parser, "--tokens", 96, "tokens of a sequence")
    program.add_number(parser, "--top-k", 16, "tokens that each attends to once it is sparse")
    program.add_number(parser, "--warm-up", 100, "steps with dense attention before")
    program.add_number(parser, "--steps", 200, "steps after it, with dense and with sparse")
    program.add_seed(parser)
    parser.add_argument(
        "--text", type=Path, metavar="PATH", help="a text to train on (default: Python's manual)"
    )
    return program.run(parser, arguments, _show)


def _show(options: argparse.Namespace) -> None:
    text = Text.load(options.text)
    plan = Plan(options.tokens, options.top_k, options.warm_up, options.steps, options.seed)
    program.title("Train: dense attention, then dense and sparse from the same weights")
    print(f"  text      {text.source}, {len(text.data) / 1e6:.1f} MB")
    print(f"  batch     {BATCH} sequences of {plan.tokens} bytes", flush=True)
    with tqdm(total=plan.warm_up + 2 * plan.steps, unit="step") as progress:
        curves = train(text, plan, progress.update)
    print(f"\n  {'':24}{'loss at first':>16}{'at last':>10}{'divergence':>13}")
    for curve in curves:
        divergence = curve.indexer_losses[-1]
        print(f"  {curve.name:24}{curve.start:16.3f}{curve.end:10.3f}{divergence:13.3f}")
    _draw(curves, options.output)
    print(f"  picture   {options.output}")
    stuck = [curve.name for curve in curves if curve.end >= curve.start]
    if stuck:
        raise ExampleError(
            f"the loss did not fall: {', '.join(stuck)}. Take more --steps; if it happens with"
            " the defaults, please report it"
        )


def _draw(curves: list[Curve], path: Path) -> None:
    """Write a PNG: above, the loss of the text; below, that of the indexers."""
    figure = Figure(figsize=(8, 6), dpi=130, layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(2, 1))
    for curve in curves:
        steps = range(curve.first_step, curve.first_step + len(curve.losses))
        above.plot(steps, curve.losses, label=curve.name, linewidth=0.8)
        below.plot(steps, curve.indexer_losses, linewidth=0.8)
    above.set(title="A tiny DeepSeek-V3.2, trained on the ops", ylabel="loss, nats a byte")
    below.set(xlabel="step", ylabel="indexers' divergence")
    above.legend()
    figure.savefig(path, format="png")


if __name__ == "__main__":
    sys.exit(main())
