"""An example: vLLM serves a small DeepSeek-V3.2 over HTTP, on a CPU."""
