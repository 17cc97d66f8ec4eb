"""``python -m custom_pypto_cli``: the same as ``custom-pypto``."""

from __future__ import annotations

import sys

from custom_pypto_cli.console import main

sys.exit(main())
