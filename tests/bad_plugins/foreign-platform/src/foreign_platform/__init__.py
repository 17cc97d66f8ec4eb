"""Is built for another machine."""
