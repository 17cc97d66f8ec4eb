"""Compares what the code makes with a file that shows it."""

from pathlib import Path


def compare(found: str, path: Path) -> None:
    """Check that the text `found` is that of `path`; another one is left beside it, as .new."""
    new = path.with_name(f"{path.name}.new")
    new.unlink(missing_ok=True)
    if found != path.read_text(encoding="utf-8"):
        new.write_text(found, encoding="utf-8")
        raise AssertionError(f"compare {new} with {path.name}; if it is right, move it there")
