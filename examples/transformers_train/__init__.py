"""Trains a tiny DeepSeek-V3.2 on a text, with dense attention and with sparse attention."""
