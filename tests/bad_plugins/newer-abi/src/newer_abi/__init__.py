"""Is built for a newer core of this generation."""
