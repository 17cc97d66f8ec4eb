"""The attention of vLLM on a CPU: its dense kernel and our ops."""
