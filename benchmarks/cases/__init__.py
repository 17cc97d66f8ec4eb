"""The sizes that the ops are published with, and long contexts."""
