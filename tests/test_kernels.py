"""Hugging Face kernels loads the folders that custom_pypto_kernels writes."""

import re
import shutil
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import custom_pypto.core
import pytest
import torch
from custom_pypto_kernels import folder, replacement, write_folder
from kernels import Metadata, get_local_kernel
from programs import run_python
from readme import code_of
from repository import ROOT, THIRD_PARTY, copy_sources
from scratch import Scratch

FOLDER = Path("kernel-folders") / "lightning-indexer"


@pytest.fixture(scope="module")
def root(wheel: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write lightning_indexer's kernel folder with the command; return the folder around it."""
    root = tmp_path_factory.mktemp("root")
    wheel_of_indexer = wheel("custom_pypto_lightning_indexer")
    run = run_python("-m", "custom_pypto_kernels", wheel_of_indexer, FOLDER, cwd=root)
    assert run.stdout.splitlines() == [str(path.relative_to(root)) for path in variants(root)]
    return root


def variants(root: Path) -> list[Path]:
    return sorted((root / FOLDER / "build").iterdir(), reverse=True)


def test_metadata_is_what_kernels_reads(root: Path) -> None:
    cpu, npu = variants(root)
    assert re.fullmatch(r"torch-stable-abi210-cpu-(x86_64|aarch64)-linux", cpu.name)
    assert npu.name == "torch-npu"
    for variant, backend in ((cpu, "cpu"), (npu, "cann")):
        metadata = Metadata.read_from_file(variant / "metadata.json")
        assert metadata.name.python_name == "custom_pypto_lightning_indexer"
        assert str(metadata.backend.backend_type) == backend
        digest = metadata.digest
        assert digest is not None
        digest.validate(type(digest).hash_variant(digest.algorithm, variant))


@pytest.mark.slow
def test_the_page_runs_where_the_plugin_is_not_installed(
    environment: Scratch, wheel: Callable[[str], Path], root: Path, tmp_path: Path
) -> None:
    environment.install(wheel("custom_pypto_build"))
    silu = copy_sources(THIRD_PARTY / "gated_silu", tmp_path / "gated_silu")
    built = environment.build_wheel(silu, tmp_path, {"CUSTOM_PYPTO_BUILD_CHECK": "0"})
    write_folder(built, root / FOLDER.with_name("gated-silu"))
    # The script stands beside the folders: none of them may hide the package `kernels`.
    script = root / "page.py"
    blocks = code_of((ROOT / "docs" / "kernels.md").read_text("utf-8"), "python")
    assert len(blocks) == 2
    script.write_text("\n".join([*blocks, AFTER_THE_PAGE]))
    # On the small tensors of the page threads would only wait for each other.
    variables = {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    environment.run(script, cwd=root, environment=variables)


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


@pytest.fixture
def add_custom(wheel: Callable[[str], Path]) -> Path:
    return wheel("custom_pypto_add_custom")


@pytest.fixture
def written(add_custom: Path, tmp_path: Path) -> Path:
    """Write add_custom's folder, with a file more by which one knows it."""
    for variant in write_folder(add_custom, tmp_path / "folder"):
        (variant / "old").touch()
    return tmp_path / "folder"


def changed(wheel: Path, target: Path) -> Path:
    """Return a copy of a wheel whose library has a byte more."""
    with zipfile.ZipFile(wheel) as source, zipfile.ZipFile(target / wheel.name, "w") as copy:
        for name in source.namelist():
            content = source.read(name)
            copy.writestr(name, content + b"\0" if name.endswith(".so") else content)
    return target / wheel.name


def old_variants(written: Path) -> list[str]:
    """Return the variants that are the old ones, after a check that nothing else is there."""
    found = sorted((written / "build").iterdir())
    assert all(path.name.startswith("torch-") for path in found)
    return [path.name for path in found if (path / "old").exists()]


def test_a_folder_is_replaced_by_a_new_one(written: Path, add_custom: Path) -> None:
    assert len(old_variants(written)) == 2
    write_folder(add_custom, written)
    assert old_variants(written) == []


def damaged(wheel: Path, target: Path) -> Path:
    """Return a copy of a wheel with one bit of its library turned."""
    content = bytearray(wheel.read_bytes())
    with zipfile.ZipFile(wheel) as archive:
        (library,) = (each for each in archive.infolist() if each.filename.endswith(".so"))
    content[library.header_offset + 1000] ^= 1
    (target / wheel.name).write_bytes(content)
    return target / wheel.name


@pytest.mark.parametrize(
    ("spoil", "largest", "text"),
    [
        (changed, folder.LARGEST, r"its library .* is not the one .*build the"),
        (damaged, folder.LARGEST, "is damaged: .*; build or download it again"),
        (lambda wheel, _: wheel, 1000, r"has files of \d+ bytes, at most 1000 are unpacked"),
    ],
    ids=["another library", "damaged", "too large"],
)
def test_a_wheel_that_is_refused_leaves_the_old_folder(
    written: Path,
    add_custom: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    spoil: Callable[[Path, Path], Path],
    largest: int,
    text: str,
) -> None:
    wrong = spoil(add_custom, tmp_path)
    monkeypatch.setattr(folder, "LARGEST", largest)
    with pytest.raises(ValueError, match=f"^{wrong}:? {text}"):
        write_folder(wrong, written)
    assert len(old_variants(written)) == 2


def test_an_interrupted_run_leaves_the_old_folder(
    written: Path, add_custom: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run ends after the first of the two variants."""
    check, variants = folder._check_libraries, []

    def interrupt(wheel: Path, plugin: Any, variant: Path) -> None:
        variants.append(variant)
        check(wheel, plugin, variant)
        if len(variants) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(folder, "_check_libraries", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_folder(add_custom, written)
    assert len(old_variants(written)) == 2


def test_nothing_is_written_behind_a_link(add_custom: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "mine").touch()
    build = tmp_path / "folder" / "build"
    build.mkdir(parents=True)
    (build / "torch-npu").symlink_to(elsewhere)
    write_folder(add_custom, build.parent)
    assert [path.name for path in elsewhere.iterdir()] == ["mine"]
    assert not (build / "torch-npu").is_symlink()
    shutil.rmtree(build)
    build.symlink_to(elsewhere)
    with pytest.raises(ValueError, match=f"^{build} is a link"):
        write_folder(add_custom, build.parent)
    assert [path.name for path in elsewhere.iterdir()] == ["mine"]


@pytest.mark.parametrize("can_exchange", [True, False])
def test_a_folder_that_cannot_be_replaced_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, can_exchange: bool
) -> None:
    if not can_exchange:
        monkeypatch.setattr(replacement, "_exchange", lambda one, other: False)
    place, new = tmp_path / "place", tmp_path / "new"
    place.mkdir()
    with pytest.raises(FileNotFoundError):
        replacement.replace_folder(new, place)
    assert place.is_dir()
    (new / "new").mkdir(parents=True)
    replacement.replace_folder(new, place)
    assert (place / "new").is_dir()
