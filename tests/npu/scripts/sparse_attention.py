"""Written as the published examples are: nothing in it knows of a simulator.

CUSTOM_PYPTO_SPARSE_ATTENTION_WEIGHTS=nz in the shell makes the weights those of the published
kernel: matrices whose bytes are in fractal NZ order, which nothing in them says.
"""

import os

import custom_pypto  # noqa: F401
import torch
import torch_npu  # noqa: F401
import torchair as tng
from custom_pypto_sparse_attention import reference
from torchair.configs.compiler_config import CompilerConfig

NAMES = (
    *("x", "w_dq", "w_uq_qr", "w_uk", "w_dkv_kr", "gamma_cq", "gamma_ckv", "sin", "cos"),
    *("cache_index", "kv_cache", "kr_cache", "block_table", "act_seqs", "w_idx_qb", "w_idx_k"),
    *("w_idx_proj", "in_gamma_k", "in_beta_k", "index_k_cache"),
)
NZ_WEIGHTS = ("w_dq", "w_uq_qr", "w_dkv_kr", "w_idx_qb", "w_idx_k", "w_idx_proj")
CACHES = ("kv_cache", "kr_cache", "index_k_cache")


class Model(torch.nn.Module):
    """One attention layer of a decoding step."""

    def forward(self, **tensors):
        """Run the fused op, which fills the caches in place."""
        return torch.ops.custom_pypto.npu_sparse_attention_pto(**tensors)


def uniform(*shape, scale=1.0):
    """Published test data: uniform in (-scale, scale)."""
    return (torch.rand(shape) * 2 - 1).mul(scale).to(torch.bfloat16)


def nz(weight):
    """The matrix with its bytes in tiles of 16 columns."""
    k, n = weight.shape
    return weight.reshape(k, n // 16, 16).permute(1, 0, 2).reshape(k, n)


torch.npu.set_device(0)
torch.manual_seed(0)
b, s1, h, rank = 2, 1, 256, 96
n1, nope, rope, latent = 8, 32, 64, 512
n_idx, d_idx = 32, 128
blocks, block = 9, 16
values = (
    uniform(b, s1, h),
    uniform(h, rank, scale=0.1),
    uniform(rank, n1 * (nope + rope), scale=0.1),
    uniform(n1, nope, latent, scale=0.1),
    uniform(h, latent + rope, scale=0.1),
    uniform(rank),
    uniform(latent),
    uniform(b, s1, rope, scale=0.1),
    uniform(b, s1, rope, scale=0.1),
    torch.tensor([[37], [66]], dtype=torch.int32),
    uniform(blocks, block, 1, latent),
    uniform(blocks, block, 1, rope),
    torch.tensor([[2, 5, 0], [4, 1, 7]], dtype=torch.int32),
    torch.tensor([38, 19], dtype=torch.int32),
    uniform(rank, n_idx * d_idx),
    uniform(h, d_idx),
    uniform(h, n_idx),
    uniform(d_idx),
    uniform(d_idx),
    uniform(blocks, block, 1, d_idx),
)
golden = dict(zip(NAMES, values, strict=True))
in_nz = NZ_WEIGHTS if os.environ.get("CUSTOM_PYPTO_SPARSE_ATTENTION_WEIGHTS") == "nz" else ()
given = {name: nz(each) if name in in_nz else each.clone() for name, each in golden.items()}
eager, graph = ({name: tensor.npu() for name, tensor in given.items()} for _ in range(2))
expected = reference.sparse_attention(*values)

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
