"""A DeepSeek-V3.2 model of transformers generating with its own attention and with ours."""
