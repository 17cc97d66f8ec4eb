"""A template of tensors in ops.toml: ``[templates.weight]``, used as ``weight(H, L+R)``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .errors import ContractError


@dataclass(frozen=True, eq=False)
class Template:
    """One template: its name, and its table."""

    name: str
    body: Mapping[str, Any]

    def fill_in(self, where: str, text: str) -> dict[str, Any]:
        """Return the keys of a tensor whose template is `text`.

        Raises:
            ContractError: the number of parameters is wrong.
        """
        parameters = self.body.get("parameters", "").split()
        _, _, given = text.removesuffix(")").partition("(")
        values = re.split(r",\s*", given) if given else []
        if len(parameters) != len(values):
            raise ContractError(
                f"{where}: {self.name} takes {len(parameters)} parameters, got {text!r}"
            )
        replaced = dict(zip(parameters, values, strict=True))
        return {
            key: _replace(value, replaced) if key in ("shape", "values") else value
            for key, value in self.body.items()
            if key not in ("parameters", "rules")
        }

    def rules_of(self, tensor: str) -> Iterator[dict[str, str]]:
        """Return the rules for one tensor, which they call ``self``."""
        for rule in self.body.get("rules", ()):
            of_tensor = {key: re.sub(r"\bself\b", tensor, text) for key, text in rule.items()}
            yield {"argument": tensor, **of_tensor}


def _replace(shape: Any, values: Mapping[str, str]) -> Any:
    """Return shapes with parameters replaced; inside an expression, in parentheses."""
    if isinstance(shape, dict):
        return {key: _replace(each, values) for key, each in shape.items()}
    if isinstance(shape, list):
        return [_replace(each, values) for each in shape]
    pattern = re.compile("|".join(rf"\b{re.escape(each)}\b" for each in values) or "(?!)")

    def replace_in(token: str) -> str:
        if token in values:
            return values[token]
        return pattern.sub(lambda match: _in_parentheses(values[match[0]]), token)

    return " ".join(map(replace_in, shape.split()))


def _in_parentheses(text: str) -> str:
    return text if text.isidentifier() or text.isdigit() else f"({text})"
