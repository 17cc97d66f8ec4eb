"""Numbers that the ops fix."""

from __future__ import annotations

RMS_EPSILON = 1e-5
"""The epsilon of the MLA prolog's two RMS norms."""

LAYER_NORM_EPSILON = 1e-6
"""The epsilon of the layer norm of the indexer's keys."""

TOP_K = 2048
"""How many positions a token of the fused op attends to at most."""
