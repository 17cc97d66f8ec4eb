"""Replaces the kernel of another plugin by a function of torch.library."""

import torch

torch.library.impl("custom_pypto::add_custom", "CPU", lambda a, b: a - b)
