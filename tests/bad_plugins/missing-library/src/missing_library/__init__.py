"""Has lost its library after it was installed."""
