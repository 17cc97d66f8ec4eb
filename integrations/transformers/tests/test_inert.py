"""Under another implementation a model runs transformers' own code, as in a process without us."""

import sys
from pathlib import Path

import torch
from fork_server import ForkServer

# Computes all twice, before and after it imports us.
SCRIPT = """
import os, sys
import torch
import tiny_models
from tiny_models import DENSE, FAMILIES, LATER, WITH_ROWS, make_model, padding, prompt

torch.set_num_threads(1)
MASK = padding(40, (0, 40), (11, 40))

def functions_of(call):
    # The functions of transformers, and ours, that run; and what the call returns.
    seen = set()

    def note(frame, event, arg):
        if event == "call" and "transformers" in (name := frame.f_globals["__name__"]):
            seen.add(f"{name}:{frame.f_code.co_firstlineno}:{frame.f_code.co_name}")

    sys.setprofile(note)
    try:
        return seen, call()
    finally:
        sys.setprofile(None)

def compute(model, implementation):
    options = dict(attention_mask=MASK, output_attentions=implementation == "eager")
    with torch.no_grad():
        out = model(prompt(2, 40), **options)
    tokens = model.generate(prompt(2, 40), attention_mask=MASK, max_new_tokens=2)
    model(prompt(2, 40), labels=prompt(2, 40)).loss.backward()
    names = ("kv_b_proj.weight", "self_attn.kv_proj.weight")
    grad = next(each.grad for name, each in model.named_parameters() if name.endswith(names))
    return [out.logits, tokens, grad, *(out.attentions or ())]

def results(name):
    if name:
        __import__(name)
    assert ("custom_pypto_transformers" in sys.modules) == bool(name)
    found = {}
    for family in (*FAMILIES, "axk2", *LATER, *WITH_ROWS):
        has_sdpa = make_model(family, implementation="eager", **DENSE)._supports_sdpa
        for implementation in ("eager", "sdpa") if has_sdpa else ("eager",):
            model = make_model(family, implementation=implementation, **DENSE)
            if name:
                # One that asks for us, in the same process, changes nothing for the others.
                make_model(family, **DENSE)(prompt(1, 40))
            else:
                # Fills the caches of functions.
                compute(make_model(family, implementation=implementation, **DENSE), implementation)
            functions, tensors = functions_of(lambda: compute(model, implementation))
            found[family, implementation] = (
                tensors,
                functions,
                [f"{type(each).__module__}.{type(each).__qualname__}" for each in model.modules()],
                [module.forward.__func__.__module__ for module in model.modules()],
                {name: str(kind) for name, kind in model._can_record_outputs.items()},
            )
    return found

theirs = results(None)
torch.save([theirs, results("custom_pypto_transformers")], os.environ["RESULTS"])
"""


def test_eager_and_sdpa_run_the_code_of_transformers(server: ForkServer, tmp_path: Path) -> None:
    """Logits, tokens, gradients, attentions, the functions that run, and the modules' classes."""
    file = tmp_path / "results.pt"
    done = server.run(SCRIPT, [Path(each) for each in sys.path], {"RESULTS": str(file)})
    assert done.returncode == 0, done.stderr
    theirs, ours = torch.load(file, weights_only=False)
    assert ours.keys() == theirs.keys()
    assert len(ours) >= 5
    for key, (tensors, functions, *rest) in ours.items():
        other_tensors, other_functions, *other_rest = theirs[key]
        assert rest == other_rest, key
        is_v4 = key[0] == "deepseek_v4"
        assert is_v4 or any(each.endswith(":expand_kv") for each in functions), key
        assert all(each.startswith("transformers.") for each in functions), key
        assert functions == other_functions, key
        assert len(tensors) == len(other_tensors) >= (4 if key[1] == "eager" else 3)
        for mine, other in zip(tensors, other_tensors, strict=True):
            assert torch.equal(mine, other), key
