"""The commands `new`, `import` and `check` of ``custom-pypto``."""
