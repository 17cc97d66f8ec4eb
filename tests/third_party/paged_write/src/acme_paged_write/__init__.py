"""torch.ops.custom_pypto.paged_write and its int8 form: all is in ops.toml and the library."""

from .ops import *
