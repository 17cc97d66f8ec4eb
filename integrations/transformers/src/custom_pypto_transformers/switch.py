"""Gives the layers of a model our classes while its attn_implementation is ours.

Every other model, and this one after a switch back, has transformers' own classes.
"""

from __future__ import annotations

import functools
from typing import Any
from weakref import WeakSet

from torch import nn
from transformers import PreTrainedModel

from .fallback import warn_once
from .support import NAME

# {transformers' class: ours}, of the families that are served.
replacements: dict[type[nn.Module], type[Any]] = {}
_models: WeakSet[Any] = WeakSet()


def watch(base: type[Any], difference: str | None) -> None:
    """Choose the classes of a family's models when one is made or its implementation is set.

    Args:
        base: the family's PreTrainedModel.
        difference: why the family cannot be served; its models get 'sdpa' instead, or 'eager' where
            they have no sdpa. None if it can.
    """
    make, switch = base.post_init, base.set_attn_implementation

    @functools.wraps(make)
    def post_init(self: Any) -> None:
        make(self)
        choose(self)

    @functools.wraps(switch)
    def set_attn_implementation(self: Any, *args: Any, **kwargs: Any) -> None:
        switch(self, *args, **kwargs)
        choose(self)

    def choose(model: Any) -> None:
        if difference is not None and model.config._attn_implementation == NAME:
            warn_once(difference)
            switch(model, "sdpa" if model._supports_sdpa else "eager")
        _models.add(model)
        # Models may share a configuration, which holds the implementation.
        for other in list(_models):
            if other.config is model.config:
                _set_classes(other)

    base.post_init, base.set_attn_implementation = post_init, set_attn_implementation


def _set_classes(module: Any, is_ours: bool = False) -> None:
    # Layers may have a copy of the configuration, which no switch reaches, or none.
    if isinstance(module, PreTrainedModel):
        is_ours = module.config._attn_implementation == NAME
    before: Any = type(module)
    if before in (replacements if is_ours else replacements.values()):
        set_class(module, replacements[before] if is_ours else before.original)
    for child in module.children():
        _set_classes(child, is_ours)


def set_class(module: Any, after: Any) -> None:
    """Give a module another class, whose forward takes the place of its own."""
    before: Any = type(module)
    module.__class__ = after
    # accelerate keeps the forward that its own one calls.
    for name, value in vars(module).items():
        if getattr(value, "__func__", None) is before.forward:
            vars(module)[name] = after.forward.__get__(module)
