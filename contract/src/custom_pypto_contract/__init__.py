"""What a plugin's wheel says of itself: manifest and contract of its ops. Needs no torch."""
