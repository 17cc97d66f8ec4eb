"""The parts of the example that choose and show the decoded text."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest
import torch

from examples.errors import ExampleError
from examples.sparse_decode import decode, sizes
from examples.sparse_decode.__main__ import main
from examples.sparse_decode.hidden_states import HiddenStates
from examples.sparse_decode.paged_cache import PagedCache
from examples.sparse_decode.picture import chosen_share
from examples.sparse_decode.session import Session
from examples.text import Text

TINY = dataclasses.replace(sizes.SMALL, contexts=(127, 130), steps=4)


def test_text_begins_again_at_its_end() -> None:
    text = Text("here", b"abc")
    assert bytes(text.tokens(2, 5).tolist()) == b"cabca"


def test_empty_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "empty.txt"
    path.write_text(" \n")
    with pytest.raises(ExampleError, match="the file is empty"):
        Text.from_file(path)


@pytest.mark.parametrize(
    ("seconds", "fastest"), [((3.0, 1.0, 2.0, 2.0), "bf16"), ((3.0, 2.0, 4.0, 1.0), "fp32")]
)
def test_steps_are_compared_with_the_faster_eager(
    seconds: tuple[float, ...], fastest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = iter(seconds)
    monkeypatch.setattr(decode, "_timed", lambda op, arguments: (op(arguments), next(left)))
    session = Session(TINY, Text.python_documentation())
    for _ in session.prefill():
        pass
    arguments = session.next_step()
    products, way = decode._fastest_eager(arguments, session.weights)
    assert products == fastest
    assert way(arguments).dtype == torch.bfloat16


def test_missing_text_ends_the_example_with_a_message(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    status = main(
        ["--no-install", "--text", str(tmp_path / "absent"), "--output", str(tmp_path / "p.png")]
    )
    assert status == 1
    assert "absent: No such file or directory; name a readable" in capsys.readouterr().err


def test_unwritable_output_is_refused_before_any_work(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    status = main(["--no-install", "--output", str(tmp_path / "file" / "picture.png")])
    assert status == 1
    assert "name a file that can be written" in capsys.readouterr().err


def test_manual_is_long_enough_for_the_longest_context() -> None:
    text = Text.python_documentation()
    assert len(text.data) > max(sizes.DEEPSEEK.contexts) + sizes.DEEPSEEK.steps


def test_hidden_state_does_not_depend_on_what_follows() -> None:
    states = HiddenStates(64, torch.Generator().manual_seed(0))
    tokens = torch.randint(
        0, 256, (states.history + 8,), generator=torch.Generator().manual_seed(1)
    )
    whole = states(tokens)
    assert torch.equal(states(tokens[:-3]), whole[:-3])


def test_equal_texts_have_nearly_equal_hidden_states() -> None:
    states = HiddenStates(1024, torch.Generator().manual_seed(0))
    history = Text("", b"some words, then other words. ").tokens(0, states.history)
    same = Text("", b" the cat sat on the mat; the cat sat on the mat").tokens(0, 47)
    made = states(torch.cat((history, same))).float()
    similarity = torch.cosine_similarity(made[22], made[46], dim=0)
    assert similarity > 0.9


def test_cache_takes_a_block_only_when_a_context_crosses_a_boundary() -> None:
    cache = PagedCache(TINY, torch.Generator().manual_seed(0))
    cache.grow(0, 127)
    taken = [cache.used_blocks]
    for _ in range(3):
        cache.grow(0, 1)
        taken.append(cache.used_blocks)
    assert taken == [1, 1, 2, 2]


def test_cache_never_gives_one_slot_twice() -> None:
    cache = PagedCache(TINY, torch.Generator().manual_seed(0))
    slots = torch.cat([cache.grow(sequence, n) for sequence, n in ((0, 100), (1, 130), (0, 31))])
    assert slots.unique().numel() == slots.numel() == 261


def test_cache_reads_what_was_written() -> None:
    cache = PagedCache(TINY, torch.Generator().manual_seed(0))
    slots = cache.grow(1, 130)[-3:]
    rows = [torch.full((3, size), float(size)).bfloat16() for size in (TINY.latent, TINY.rope, 128)]
    cache.write(slots, *rows)
    assert all(torch.equal(a, b) for a, b in zip(cache.read(slots), rows, strict=True))


@pytest.mark.parametrize(
    ("chosen", "length", "edges", "share"),
    [
        pytest.param([0, 1, 5, -1], 8, [0, 2, 4, 6, 8], [100, 0, 50, 0], id="whole-context"),
        pytest.param([4], 5, [0, 2, 4, 6, 8], [0, 0, 100, None], id="not-decoded-yet"),
        pytest.param([9, 7, 0], 10, [6, 7, 8, 9, 10], [0, 100, 0, 100], id="its-end"),
        pytest.param([1], 2, [-2, -1, 0, 1, 2], [None, None, 0, 100], id="before-its-start"),
    ],
)
def test_share_counts_the_positions_of_a_column(
    chosen: list[int], length: int, edges: list[int], share: list[int | None]
) -> None:
    found = chosen_share(torch.tensor(chosen), length, torch.tensor(edges)).tolist()
    assert [None if value != value else value for value in found] == share


def test_small_size_decodes_within_the_tolerance(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    picture = tmp_path / "out" / "selection.png"
    status = main(["--no-install", "--size", "small", "--steps", "2", "--output", str(picture)])
    output = capsys.readouterr().out
    assert status == 0
    assert "every step is within the published tolerance" in output
    assert re.search(r"^  torch eager in (bf16|fp32) ", output, re.MULTILINE)
    assert picture.read_bytes().startswith(b"\x89PNG")
