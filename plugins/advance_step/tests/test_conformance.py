"""The conformance suite on npu_advance_step_flashattn."""

from __future__ import annotations

import custom_pypto_testing


class TestAdvanceStep(custom_pypto_testing.Conformance):
    plugin = "advance_step"
