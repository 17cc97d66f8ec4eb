"""The manifest of a plugin's wheel, and the contract of its ops. Needs no torch."""
