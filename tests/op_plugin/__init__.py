"""Ops imported from op-plugin's own file, launched beside those of torch_npu."""

INCOMPARABLE = "not to be compared: "
"""Begins the result for an op that torch_npu lacks, launches otherwise or cannot be called for."""
