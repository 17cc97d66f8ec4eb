"""DeepSeek sparse attention decoding a real text through separately installed op wheels."""
