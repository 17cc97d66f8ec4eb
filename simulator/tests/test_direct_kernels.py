"""AscendC kernels that are launched directly: kernels/count.cpp, run by a stream."""

from functools import partial

import pytest
from script import PRELUDE, Run

LAUNCH = (
    PRELUDE
    + """
import os
opp = os.environ["ASCEND_CUSTOM_OPP_PATH"].partition(":")[0]
library = ctypes.CDLL(opp + "/op_api/lib/libcust_opapi.so")
def launch(data, size, claimed):
    stream = torch.npu.current_stream().npu_stream
    library.launch_count(3, None, ctypes.c_void_p(stream), ctypes.c_void_p(data),
                         ctypes.c_int64(size), ctypes.c_int64(claimed))
"""
)


@pytest.fixture
def run(run: Run) -> Run:
    """Runs a script after `LAUNCH`."""
    return partial(run, prelude=LAUNCH)


def test_every_block_runs_the_last_one_first(run: Run) -> None:
    run("""
        numbers = torch.zeros(7, dtype=torch.int32, device="npu")
        launch(numbers.data_ptr(), 7, 7)
        assert numbers.tolist() == [0, 0, 1, 1, 2, 2, 321]
    """)


@pytest.mark.parametrize(
    ("data", "claimed", "reason"),
    [
        ("numbers.data_ptr()", 6, "count: GlobalTensor: element 6 of 6"),
        ("torch.zeros(7).int().data_ptr()", 7, "count: its memory is not allocated on the device"),
    ],
)
def test_an_access_outside_is_the_stream_s_error(
    run: Run, data: str, claimed: int, reason: str
) -> None:
    run(f"""
        numbers = torch.zeros(7, dtype=torch.int32, device="npu")
        launch({data}, 7, {claimed})
        with raises("{reason}"):
            torch.npu.synchronize()
    """)
