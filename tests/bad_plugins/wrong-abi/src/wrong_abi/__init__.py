"""Is built for a core of another generation."""
