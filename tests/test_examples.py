"""The examples, at sizes that take seconds."""

import re
import sys

import pytest

from examples import transformers_generate
from examples.sparse_decode.__main__ import main
from examples.transformers_generate import MODELS


def test_no_environment_but_a_virtual_one_is_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    with pytest.raises(SystemExit, match="only runs in a virtual environment"):
        main([])


def test_small_size_decodes_within_the_tolerance(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--no-install", "--size", "small", "--steps", "2"])
    output = capsys.readouterr().out
    assert "every step is within the published tolerance" in output
    assert re.search(r"^  torch eager in (bf16|fp32) ", output, re.MULTILINE)


@pytest.mark.parametrize("model", MODELS)
def test_all_generate_the_same_tokens(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    contexts = ["64", "1100"] if model == "deepseek_v32" else ["300"]
    transformers_generate.main(["--model", model, "--contexts", *contexts, "--tokens", "3"])
    assert capsys.readouterr().out.count("all 3") == len(contexts)
