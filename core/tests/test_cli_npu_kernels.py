"""The doctor's look at the kernels for NPUs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from cli_records import ADD_KERNEL, MISSING_KERNEL
from custom_pypto_cli import child, distribution, records
from custom_pypto_cli.probes import npu_kernels
from custom_pypto_cli.probes.probe import Level


@pytest.fixture
def outcome(monkeypatch):
    """Give a way to say how the search ends."""
    monkeypatch.setattr(distribution, "version", lambda name: "2.13.0")

    def end(**fields):
        monkeypatch.setattr(child, "call", lambda function, **options: child.Outcome(**fields))

    return end


def record(kernel):
    return records.as_json(kernel)


def test_nothing_is_searched_without_torch_npu(monkeypatch):
    monkeypatch.setattr(distribution, "version", lambda name: None)
    [probe] = npu_kernels.probes(1.0)
    assert "torch_npu is not installed" in probe.value
    assert probe.level is Level.OK


def test_each_kernel_is_a_line(outcome):
    outcome(value={"add_custom": [record(ADD_KERNEL)]})
    [probe] = npu_kernels.probes(1.0)
    assert (probe.name, probe.level) == ("add_custom", Level.OK)
    assert probe.value == "aclnnAdd of CANN (/cann/lib64/libopapi.so)"


def test_a_kernel_for_another_npu_is_a_note_with_what_is_launched_instead(outcome):
    unfit = "/site/lib/libx_ascendc_dav-3510.so: not used: it was compiled for dav-3510"
    outcome(value={"add_custom": [record(replace(ADD_KERNEL, searched=(unfit,)))]})
    [probe] = npu_kernels.probes(1.0)
    assert (probe.level, probe.remark) == (Level.NOTE, unfit)
    assert probe.advice == "until then the op launches aclnnAdd"


def test_missing_kernel_is_a_note_with_the_places(outcome):
    outcome(value={"add_custom": [record(MISSING_KERNEL)]})
    [probe] = npu_kernels.probes(1.0)
    assert (probe.name, probe.level) == ("add_custom: aclnnOther", Level.NOTE)
    assert "CANN: libopapi.so: not there" in probe.remark


def test_failed_search_is_a_problem(outcome):
    outcome(failure="crashed with SIGSEGV")
    [probe] = npu_kernels.probes(1.0)
    assert probe.level is Level.PROBLEM
    assert "SIGSEGV" in probe.remark
