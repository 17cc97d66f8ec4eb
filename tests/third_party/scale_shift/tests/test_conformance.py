"""The conformance suite of custom_pypto, on every op and sample of this plugin."""

from __future__ import annotations

import custom_pypto_testing


class TestScaleShift(custom_pypto_testing.Conformance):
    plugin = "acme_scale_shift"
