"""Models and implementations that are not ours compute the bits that they did before."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import tiny_models
import torch
from tiny_models import prompt

# Imports nothing of ours but the modules given.
SCRIPT = """
import sys
file, *first = sys.argv[1:]
for name in first:
    __import__(name)
import torch
import tiny_models
from tiny_models import DENSE, FAMILIES, make_model, padding, prompt

torch.set_num_threads(1)
found = {}
mask = padding(40, (0, 40), (11, 40))
for family in FAMILIES:
    for implementation in ("eager", "sdpa"):
        model = make_model(family, implementation=implementation, **DENSE)
        options = dict(attention_mask=mask, output_attentions=implementation == "eager")
        with torch.no_grad():
            out = model(prompt(2, 40), **options)
        tokens = model.generate(prompt(2, 40), attention_mask=mask, max_new_tokens=4)
        labels = prompt(2, 40)
        model(prompt(2, 40), labels=labels).loss.backward()
        grad = model.model.layers[0].self_attn.kv_b_proj.weight.grad
        found[family, implementation] = [out.logits, tokens, grad, *(out.attentions or ())]
torch.save(found, file)
assert ("custom_pypto_transformers" in sys.modules) == bool(first), first
"""


def results(folder: Path, *first: str) -> dict[tuple[str, str], list[torch.Tensor]]:
    """Return what the script computes in a process of its own that imports ``first``."""
    file = folder / "results.pt"
    tests = str(Path(__file__).parent)
    environment = {**os.environ, "PYTHONPATH": tests}
    command = [sys.executable, "-c", SCRIPT, str(file), *first]
    subprocess.run(command, env=environment, check=True)
    found: dict[tuple[str, str], list[torch.Tensor]] = torch.load(file)
    return found


def test_eager_and_sdpa_keep_their_bits(tmp_path: Path) -> None:
    """Logits, tokens, gradients and attentions, with our classes in the model and without."""
    theirs = results(tmp_path)
    ours = results(tmp_path, "custom_pypto_transformers")
    assert ours.keys() == theirs.keys()
    for key, tensors in ours.items():
        assert len(tensors) == len(theirs[key]) == (5 if key[1] == "eager" else 3)
        for mine, other in zip(tensors, theirs[key], strict=True):
            assert torch.equal(mine, other), key


@pytest.mark.parametrize("family", tiny_models.FAMILIES)
def test_attentions_of_a_model_without_our_classes_are_recorded(family: str) -> None:
    """from_config of another model puts our class into a table that both models share."""
    tiny_models.make_model(family)
    model = tiny_models.make_by_class(family, attn_implementation="eager")
    assert type(model.model.layers[0].self_attn).__module__.startswith("transformers.")
    with torch.no_grad():
        attentions = model(prompt(1, 30), output_attentions=True).attentions
    assert len(attentions) == model.config.num_hidden_layers
    assert all(attention.shape == (1, 4, 30, 30) for attention in attentions)
