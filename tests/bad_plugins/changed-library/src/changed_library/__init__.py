"""Has a library that is not the one it was built with."""
