"""The conformance suite on npu_advance_step_flashattn."""

import custom_pypto_testing


class TestAdvanceStep(custom_pypto_testing.Conformance):
    plugin = "advance_step"
