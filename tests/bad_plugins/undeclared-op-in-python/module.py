"""Registers an op that its manifest does not list."""

import torch

_library = torch.library.Library("custom_pypto", "FRAGMENT")
_library.define("an_op_of_undeclared_op_in_python(Tensor x) -> Tensor")
