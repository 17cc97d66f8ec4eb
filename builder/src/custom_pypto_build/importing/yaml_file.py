"""Reads YAML with the line of every value. PyYAML is needed for nothing else, so it is optional."""

from __future__ import annotations

from typing import Any, NamedTuple

from .model import ImportingError, Place

_MOST_LEVELS = 30


class Value(NamedTuple):
    """A value of a YAML file. Texts are as written: ``all_version``, ``1e-5``."""

    node: Any
    file: str

    @property
    def place(self) -> Place:
        """Where it begins."""
        return Place(self.file, self.node.start_mark.line + 1)

    @property
    def text(self) -> str | None:
        """The text of a scalar; None for a list or a mapping."""
        return self.node.value if self.node.id == "scalar" else None

    @property
    def items(self) -> list[Value] | None:
        """The elements of a list; None for anything else."""
        if self.node.id != "sequence":
            return None
        return [Value(each, self.file) for each in self.node.value]

    @property
    def table(self) -> dict[str, Value] | None:
        """The values of a mapping by key; None for anything else, and where two keys are equal."""
        if self.node.id != "mapping":
            return None
        found = {_text(key): Value(each, self.file) for key, each in self.node.value}
        return found if len(found) == len(self.node.value) else None


def read(text: str, file: str) -> Value | None:
    """Return the document in `text`; None if it is empty.

    Raises:
        ImportingError: PyYAML is not installed, or the text is not YAML.
    """
    try:
        import yaml
    except ImportError:
        raise ImportingError(
            f"{file} is YAML, and reading it needs PyYAML: pip install pyyaml"
        ) from None
    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    try:
        # Composing recurses, in C without a limit; reading events does not.
        levels = 0
        for event in yaml.parse(text, Loader=loader):
            levels += isinstance(event, yaml.CollectionStartEvent)
            levels -= isinstance(event, yaml.CollectionEndEvent)
            is_alias = isinstance(event, yaml.AliasEvent)
            if levels > _MOST_LEVELS or is_alias:
                # Anchors can make a small file a huge value.
                problem = "is an alias of another" if is_alias else "is nested too deeply"
                raise ImportingError(f"{file}:{event.start_mark.line + 1}: a value {problem}")
        node = yaml.compose(text, Loader=loader)
    except (yaml.YAMLError, ValueError) as error:
        problem = " ".join(str(error).split())
        raise ImportingError(f"{file} is not YAML: {problem}") from None
    return None if node is None else Value(node, file)


def one_line(value: Value, most: int = 200) -> str:
    """Return a value as a comment can show it, cut where it is long."""
    text = _text(value.node)
    return text if len(text) <= most else f"{text[: most - 3]}..."


def _text(node: Any) -> str:
    if node.id == "scalar":
        return node.value or "''"
    if node.id == "sequence":
        return f"[{', '.join(map(_text, node.value))}]"
    return f"{{{', '.join(f'{_text(key)}: {_text(each)}' for key, each in node.value)}}}"
