"""Hugging Face kernels loads the folders that custom_pypto_kernels writes."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import custom_pypto.core
import pytest
import torch
from custom_pypto_kernels import write_folder
from kernels import Metadata, get_local_kernel
from scratch import Scratch

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "kernels.md"
GATED_SILU = ROOT / "tests" / "third_party" / "gated_silu"
FOLDER = Path("kernel-folders") / "lightning-indexer"


@pytest.fixture(scope="module")
def root(wheel: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write lightning_indexer's kernel folder with the command; return the folder around it."""
    root = tmp_path_factory.mktemp("root")
    program = [sys.executable, "-m", "custom_pypto_kernels"]
    command = [*program, wheel("custom_pypto_lightning_indexer"), FOLDER]
    run = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    assert run.stdout.splitlines() == [str(path.relative_to(root)) for path in variants(root)]
    return root


def variants(root: Path) -> list[Path]:
    return sorted((root / FOLDER / "build").iterdir(), reverse=True)


def test_metadata_is_what_kernels_reads(root: Path) -> None:
    found = {}
    for variant in variants(root):
        metadata = Metadata.read_from_file(variant / "metadata.json")
        found[variant.name] = (metadata.name.python_name, str(metadata.backend.backend_type))
        digest = metadata.digest
        assert digest is not None
        digest.validate(type(digest).hash_variant(digest.algorithm, variant))
    cpu, npu = sorted(found, reverse=True)
    assert re.fullmatch(r"torch-stable-abi210-cpu-(x86_64|aarch64)-linux", cpu)
    assert npu == "torch-npu"
    name = "custom_pypto_lightning_indexer"
    assert found == {cpu: (name, "cpu"), npu: (name, "cann")}


def test_the_page_runs_where_the_plugin_is_not_installed(
    environment: Scratch, wheel: Callable[[str], Path], root: Path, tmp_path: Path
) -> None:
    environment.install(wheel("custom_pypto_build"))
    silu = tmp_path / "gated_silu"
    skipped = shutil.ignore_patterns("build", "*.egg-info", "__pycache__")
    built = environment.build_wheel(shutil.copytree(GATED_SILU, silu, ignore=skipped), tmp_path)
    write_folder(built, root / FOLDER.with_name("gated-silu"))
    # The script stands beside the folders: none of them may hide the package `kernels`.
    script = root / "page.py"
    script.write_text("\n".join([*blocks(), AFTER_THE_PAGE]))
    # On the small tensors of the page threads would only wait for each other.
    variables = {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    environment.run(script, cwd=root, environment=variables)


def blocks() -> list[str]:
    found = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert len(found) == 2
    return found


# transformers' own forward raises, which proves that the layer ran.
AFTER_THE_PAGE = """
import custom_pypto.core
from transformers import GlmMoeDsaConfig
from transformers.models.glm_moe_dsa.modeling_glm_moe_dsa import GlmMoeDsaIndexer

def refuse(*args, **kwargs):
    raise RuntimeError("transformers' own")

def generate(model, tokens=tokens, **options):
    return model.generate(tokens, max_new_tokens=2, do_sample=False, **options)

own = DeepseekV32Indexer.forward
DeepseekV32Indexer.forward = refuse
expected = expected[:, :42]
assert torch.equal(expected, generate(model, cache_implementation="static"))
model.set_attn_implementation("eager")  # its mask is not of bool
assert torch.equal(expected, generate(model))
tokens = torch.randint(3, 1000, (2, 40))
real = torch.arange(40) >= torch.tensor([[0], [7]])
padding = {"tokens": tokens, "attention_mask": real.long()}
try:
    generate(model, **padding)
except RuntimeError as error:
    assert str(error) == "transformers' own"
else:
    raise AssertionError("padding was not left to transformers")
DeepseekV32Indexer.forward = own
theirs = AutoModelForCausalLM.from_config(config).eval()
theirs.load_state_dict(model.state_dict())
assert torch.equal(generate(model, **padding), generate(theirs, **padding))

sizes = {name: value for name, value in config.to_dict().items() if name in {
    "vocab_size", "hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads",
    "q_lora_rank", "kv_lora_rank", "index_topk", "initializer_range", "num_hidden_layers"}}
glm = AutoModelForCausalLM.from_config(GlmMoeDsaConfig(
    **sizes, index_n_heads=64, mlp_layer_types=["dense"] * 2)).eval()
expected = generate(glm)
kernels.replace_kernel_forward_from_hub(GlmMoeDsaIndexer, "GlmMoeDsaIndexer")
layer = kernels.LocalLayerRepository(
    Path("kernel-folders/lightning-indexer"), layer_name="GlmMoeDsaIndexer"
)
kernels.register_kernel_mapping({"GlmMoeDsaIndexer": {"cpu": layer}})
kernels.kernelize(glm, mode=kernels.Mode.INFERENCE, device="cpu")
GlmMoeDsaIndexer.forward = refuse
assert torch.equal(expected, generate(glm))

silu = get_local_kernel(Path("kernel-folders/gated-silu"))
x = torch.randn(3, 4)
torch.testing.assert_close(silu.gated_silu(x, x), torch.nn.functional.silu(x) * x)
(plugin,) = (each for each in custom_pypto.core.plugins() if each.name == "lightning_indexer")
assert Path("kernel-folders").resolve() in plugin.library.resolve().parents
"""


def test_an_installed_plugin_of_the_same_version_is_used(root: Path) -> None:
    module = get_local_kernel(root / FOLDER)
    names = {op.name for op in custom_pypto.core.ops() if op.plugin == "lightning_indexer"}
    assert set(module.__all__) == {*names, "layers"}
    for name in names:
        assert getattr(module, name) is getattr(torch.ops.custom_pypto, name)
    assert not any(str(root) in entry for entry in sys.path)


def test_an_installed_plugin_of_another_version_is_refused(root: Path, tmp_path: Path) -> None:
    other = shutil.copytree(root / FOLDER, tmp_path / "other")
    for file in other.glob("build/*/wheel/*/custom_pypto_plugin.json"):
        file.write_text(file.read_text().replace('"version": "0.1.0"', '"version": "9.9.9"', 1))
    with pytest.raises(ImportError, match=r"-indexer 9\.9\.9, but .* 0\.1\.0 is loaded.*uninstall"):
        get_local_kernel(other)


@pytest.mark.parametrize(("name", "reason"), [("build", "it has 0"), ("nothing", "it is missing")])
def test_a_file_that_is_not_a_plugins_wheel_is_refused(
    wheel: Callable[[str], Path], tmp_path: Path, name: str, reason: str
) -> None:
    file = wheel("custom_pypto_build") if name == "build" else tmp_path / "nothing.whl"
    with pytest.raises(ValueError, match=f"^{file} must be the wheel of a plugin.*; {reason}"):
        write_folder(file, tmp_path / "folder")
    assert not list(tmp_path.iterdir())
