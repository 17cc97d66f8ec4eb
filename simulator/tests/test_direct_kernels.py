"""AscendC kernels that are launched directly: compiled for the host, and run by a stream."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from custom_pypto_simulator_build import build_kernels
from script import PRELUDE, Run, write_kernels

# Each block adds its number to a range of its own, and its turn to the last element.
SOURCE = """\
#include "kernel_operator.h"

extern "C" __global__ __aicore__ void count(GM_ADDR data, int64_t size, int64_t claimed) {
  AscendC::GlobalTensor<int32_t> numbers;
  numbers.SetGlobalBuffer((__gm__ int32_t*)data, claimed);
  const int64_t each = (size - 1) / AscendC::GetBlockNum();
  AscendC::GlobalTensor<int32_t> own = numbers[AscendC::GetBlockIdx() * each];
  for (int64_t i = 0; i < each; ++i) own.SetValue(i, own.GetValue(i) + AscendC::GetBlockIdx());
  numbers.SetValue(size - 1, 10 * numbers.GetValue(size - 1) + AscendC::GetBlockIdx() + 1);
  AscendC::DataCacheCleanAndInvalid<int32_t, AscendC::CacheLine::ENTIRE_DATA_CACHE>(numbers);
}

extern "C" void launch_count(uint32_t blocks, void* l2ctrl, void* stream, uint8_t* data,
                             int64_t size, int64_t claimed) {
  count<<<blocks, l2ctrl, stream>>>(data, size, claimed);
}
"""

LAUNCH = (
    PRELUDE
    + """
import os
library = ctypes.CDLL(os.environ["ASCEND_CUSTOM_OPP_PATH"] + "/op_api/lib/libcust_opapi.so")
def launch(data, size, claimed):
    stream = torch.npu.current_stream().npu_stream
    library.launch_count(3, None, ctypes.c_void_p(stream), ctypes.c_void_p(data),
                         ctypes.c_int64(size), ctypes.c_int64(claimed))
"""
)


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("ascendc")
    write_kernels(root, SOURCE)
    return build_kernels([root], root / "opp")["mine"]


@pytest.fixture
def run(run: Run, kernels: Path) -> Run:
    """Runs a script after `LAUNCH`, with the kernels of `SOURCE`."""
    return partial(run, prelude=LAUNCH, ASCEND_CUSTOM_OPP_PATH=kernels)


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
