"""Replaces the kernel of another plugin."""

import torch

_library = torch.library.Library("custom_pypto", "FRAGMENT")
_library.impl("add_custom", lambda a, b: a - b, "CPU")
