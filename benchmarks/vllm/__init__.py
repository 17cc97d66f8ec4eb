"""DeepSeek-V3.2 in vLLM on a CPU: its dense attention and ours."""
