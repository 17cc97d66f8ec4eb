"""Has a schema with a type that torch does not know."""
