"""The commands `bench`, `replay`, `samples` and `verify` of ``custom-pypto``."""
