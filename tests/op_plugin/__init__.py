"""Ops imported from op-plugin's own file, launched beside torch_npu's ops."""

INCOMPARABLE = "not to be compared: "
"""Begins the result for an op that torch_npu lacks, launches otherwise or cannot be called for."""
