"""Has a manifest that ends in the middle."""
