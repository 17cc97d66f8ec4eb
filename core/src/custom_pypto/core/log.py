"""The logger of core, which reports each step of loading at level DEBUG."""

from __future__ import annotations

import logging

logger = logging.getLogger("custom_pypto")
