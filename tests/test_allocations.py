"""What the ops allocate on a CPU, and what they do without memory."""

import os
import shlex
import subprocess
from pathlib import Path

import custom_pypto.core
import pytest
from programs import run_python

FOLDER = Path(__file__).parent / "allocations"

SCRIPT = """
import ctypes, sys
import custom_pypto.core, torch

counter = ctypes.CDLL(sys.argv[1])
add_custom = torch.ops.custom_pypto.add_custom
indexer = torch.ops.custom_pypto.npu_lightning_indexer_pto


def add(*shape):
    pair = torch.ones(2, *shape)
    return lambda: add_custom(*pair)


def add_transposed(*shape):
    pair = torch.ones(2, *shape).transpose(1, 2)
    return lambda: add_custom(*pair)


def select(batch, tokens, length):
    blocks = -(-length // 128)
    arguments = dict(
        actual_seq_lengths_query=torch.full((batch,), tokens, dtype=torch.int32),
        actual_seq_lengths_key=torch.full((batch,), length, dtype=torch.int32),
        block_table=torch.arange(blocks, dtype=torch.int32).expand(batch, -1),
        layout_query="BSND",
        layout_key="PA_BSND",
        sparse_count=64,
        sparse_mode=3,
    )
    tensors = (
        torch.randn(batch, tokens, 64, 128, dtype=torch.bfloat16),
        torch.randn(blocks, 128, 1, 128, dtype=torch.bfloat16),
        torch.randn(batch, tokens, 64, dtype=torch.bfloat16),
    )
    return lambda: indexer(*tensors, **arguments)


torch.set_num_threads(2)
torch.randn(2, 3)
if sys.argv[2] == "add_custom":
    calls = [add(16), add(300_000), add_transposed(300, 500)]
else:
    # Larger and smaller calls by turns: reserved memory is kept.
    calls = [select(2, 3, 1000), select(1, 1, 20_000), select(4, 20, 300)]
for call in calls * 3:
    call()
assert counter.count_allocations_of(f"libcustom_pypto_{sys.argv[2]}.so".encode()) == 1
for call in calls * 20:
    call()
print(counter.counted_allocations())
"""


@pytest.fixture(scope="module")
def counter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    library = tmp_path_factory.mktemp("allocations") / "count.so"
    compiler = shlex.split(os.environ.get("CXX", "c++"))
    flags = ["-std=c++17", "-O2", "-fPIC", "-shared", "-fno-builtin"]
    subprocess.run(
        [*compiler, *flags, str(FOLDER / "count.cpp"), "-o", str(library), "-ldl"], check=True
    )
    return library


def run(counter: Path, *arguments: str | Path) -> str:
    """Return what Python prints with `counter` preloaded."""
    return run_python(*arguments, env={"LD_PRELOAD": str(counter)}).stdout


# torch::stable::Tensor in torch's own header counts references. The number is the tensors among
# arguments and results, times the 20 calls of each of three sizes.
@pytest.mark.parametrize(("plugin", "tensors"), [("add_custom", 3), ("lightning_indexer", 7)])
def test_repeated_call_allocates_nothing_but_reference_counts(
    counter: Path, plugin: str, tensors: int
) -> None:
    assert int(run(counter, "-c", SCRIPT, str(counter), plugin)) == tensors * 20 * 3


@pytest.mark.slow
def test_call_without_memory_is_refused_and_the_next_is_right(counter: Path) -> None:
    lines = run(counter, FOLDER / "each_fails.py", str(counter)).splitlines()
    refused = {op: int(count) for op, count in map(str.split, lines)}
    assert refused.keys() == {op.name for op in custom_pypto.core.ops()}
    assert all(refused.values())
