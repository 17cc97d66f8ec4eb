"""The pause of Python's garbage collector."""

import gc

import pytest
from custom_pypto_contract import collector


def test_it_goes_on_after_an_error_where_the_first_pause_ends() -> None:
    during = []

    @collector.paused()
    def fail() -> None:
        with collector.paused():
            pass
        during.append(gc.isenabled())
        raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert during == [False]
    assert gc.isenabled()
