"""torch.ops.custom_pypto.sample_tokens: all is in ops.toml and the library."""

from .ops import *
