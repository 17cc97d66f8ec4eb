"""torch.ops.custom_pypto.grouped_matmul: all is in ops.toml and the library."""

from .ops import *
