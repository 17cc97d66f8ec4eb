"""Reads YAML with the line of every value. PyYAML is needed for nothing else, so it is optional."""

from __future__ import annotations

from typing import Any, NamedTuple

from .model import ImportingError, Place

_MOST_LEVELS = 30


class Value(NamedTuple):
    """A value of a YAML file. Texts are as written: ``all_version``, ``1e-5``."""

    content: str | list[Any]
    """A text, the elements of a list, or the keys and values of a mapping by turns."""
    is_mapping: bool
    place: Place
    """Where it begins."""

    @property
    def text(self) -> str | None:
        """The text of a scalar; None for a list or a mapping."""
        return self.content if isinstance(self.content, str) else None

    @property
    def items(self) -> list[Value] | None:
        """The elements of a list; None for anything else."""
        return None if self.is_mapping or isinstance(self.content, str) else self.content

    @property
    def table(self) -> dict[str, Value] | None:
        """The values of a mapping by key; None for anything else, and where two keys are equal."""
        if not self.is_mapping:
            return None
        keys, values = self.content[::2], self.content[1::2]
        found = dict(zip(map(_text, keys), values, strict=True))
        return found if len(found) == len(keys) else None


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
    # yaml.compose recurses, in C without a limit; reading events does not.
    opened: list[list[Value]] = [[]]
    try:
        for event in yaml.parse(text, Loader=loader):
            if isinstance(event, yaml.CollectionEndEvent):
                opened.pop()
            elif isinstance(event, yaml.NodeEvent):
                place = Place(file, event.start_mark.line + 1)
                is_alias = isinstance(event, yaml.AliasEvent)
                if is_alias or len(opened) > _MOST_LEVELS:
                    # Anchors can make a small file a huge value.
                    problem = "is an alias of another" if is_alias else "is nested too deeply"
                    raise ImportingError(f"{place}: a value {problem}")
                content = event.value if isinstance(event, yaml.ScalarEvent) else []
                opened[-1].append(Value(content, isinstance(event, yaml.MappingStartEvent), place))
                if isinstance(content, list):
                    opened.append(content)
    except (yaml.YAMLError, ValueError) as error:
        problem = " ".join(str(error).split())
        raise ImportingError(f"{file} is not YAML: {problem}") from None
    if len(opened[0]) > 1:
        raise ImportingError(f"{file} has several documents; give a file of each")
    return opened[0][0] if opened[0] else None


def one_line(value: Value, most: int = 200) -> str:
    """Return a value as a comment can show it, cut where it is long."""
    text = _text(value)
    return text if len(text) <= most else f"{text[: most - 3]}..."


def _text(value: Value) -> str:
    if isinstance(value.content, str):
        return value.content or "''"
    texts = [*map(_text, value.content)]
    if not value.is_mapping:
        return f"[{', '.join(texts)}]"
    return f"{{{', '.join(map(': '.join, zip(texts[::2], texts[1::2], strict=True)))}}}"
