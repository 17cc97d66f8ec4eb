"""Written as the published examples are: nothing in it knows of a simulator.

CUSTOM_PYPTO_SPARSE_ATTENTION_WEIGHTS=nz in the shell gives the published kernel's weights:
matrices whose bytes are in fractal NZ order, which nothing in them says.
"""

import os

import custom_pypto  # noqa: F401
import torch
import torch_npu  # noqa: F401
import torchair as tng
from custom_pypto_sparse_attention import reference, samples
from custom_pypto_sparse_attention.weight_order import NZ_WEIGHTS
from torchair.configs.compiler_config import CompilerConfig

CACHES = ("kv_cache", "kr_cache", "index_k_cache")


class Model(torch.nn.Module):
    """One attention layer of a decoding step."""

    def forward(self, **tensors):
        """Run the fused op, which fills the caches in place."""
        return torch.ops.custom_pypto.npu_sparse_attention_pto(**tensors)


def nz(weight):
    """The matrix with its bytes in tiles of 16 columns."""
    k, n = weight.shape
    return weight.reshape(k, n // 16, 16).permute(1, 0, 2).reshape(k, n)


torch.npu.set_device(0)
golden = samples.fused_arguments(samples.FRACTAL_SIZES)
in_nz = NZ_WEIGHTS if os.environ.get("CUSTOM_PYPTO_SPARSE_ATTENTION_WEIGHTS") == "nz" else ()
given = {name: nz(each) if name in in_nz else each.clone() for name, each in golden.items()}
eager, graph = ({name: tensor.npu() for name, tensor in given.items()} for _ in range(2))
expected = reference.sparse_attention(**golden)

config = CompilerConfig()
compiled = torch.compile(
    Model(), backend=tng.get_npu_backend(compiler_config=config), dynamic=False, fullgraph=True
)
for where, function, tensors in (
    ("cpu", Model(), given),
    ("eager", Model(), eager),
    ("graph", compiled, graph),
):
    result = function(**tensors)
    close = torch.isclose(result.cpu().float(), expected.float(), rtol=0.03, atol=1e-4)
    assert close.float().mean() >= 0.97, (where, close.float().mean())
    for name in CACHES:
        left, right = tensors[name].cpu().float(), golden[name].float()
        written = torch.isclose(left, right, rtol=0.03, atol=1e-2)
        assert written.float().mean() >= 0.97, (where, name)
print("same result")
