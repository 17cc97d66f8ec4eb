"""The pause of Python's garbage collector."""

from __future__ import annotations

import gc

import pytest
from custom_pypto_contract import collector


def test_it_goes_on_after_an_error() -> None:
    during = []

    @collector.paused()
    def fail() -> None:
        during.append(gc.isenabled())
        raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert during == [False]
    assert gc.isenabled()


def test_who_has_stopped_it_keeps_it_so() -> None:
    with collector.paused():
        with collector.paused():
            pass
        assert not gc.isenabled()
