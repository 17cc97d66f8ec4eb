"""The conformance suite on the ops of add_custom."""

from __future__ import annotations

import custom_pypto_testing


class TestAddCustom(custom_pypto_testing.Conformance):
    plugin = "add_custom"
