"""Simulated kernels under both phases of an aclnn call: search, misuse, failures.

tests/npu/launch/test_launch.py has every kind of argument, workspaces and plans that refuse.
"""

from pathlib import Path

import pytest
from custom_pypto_simulator_build import BuildError, build_kernels
from script import Run, write_kernels


def test_the_contiguous_plan_refuses_each_strided_tensor(run: Run) -> None:
    run("""
        create = function("aclCreateTensorList", ctypes.c_void_p)
        def call(first, second, other, out):
            values = (ctypes.c_void_p * 2)(tensor(first), tensor(second))
            inputs = ctypes.c_void_p(create(values, ctypes.c_uint64(2)))
            others = [None if other is None else tensor(other), tensor(out)]
            try:
                launch("aclnnTestContiguous", inputs, *others)
            except RuntimeError as error:
                return str(error)
        whole = torch.ones(3, 3, device="npu")
        out = torch.zeros(3, 3, device="npu")
        for other in (whole, None):
            assert call(whole, whole, other, out) is None
        assert out.cpu().eq(2).all()
        refused = {
            "argument 1[1]": call(whole, whole.T, whole, out),
            "argument 2": call(whole, whole, whole.T, out),
            "argument 3": call(whole, whole, whole, out.T),
        }
        for name, text in refused.items():
            assert "phase 1: 161002" in text and f"{name} must be contiguous" in text, text
    """)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("aclnnTestThrow", "this kernel always fails"),
        ("aclnnTestAssign", "write into it with copy_"),
    ],
)
def test_a_kernel_that_fails_shows_at_the_synchronisation(run: Run, name: str, text: str) -> None:
    run(f"""
        value = torch.ones(2, device="npu")
        launch_tensors("{name}", value, value)
        with raises("{name}", "{text}"):
            torch.npu.synchronize()
    """)


def test_an_executor_cannot_be_used_twice(run: Run) -> None:
    run("""
        value = torch.ones(2, device="npu")
        made = tensor(value)
        executor, size = phase_1("aclnnTestAdd", made, made, made)
        phase_2("aclnnTestAdd", executor, size)
        with raises("phase 2: 561101"):
            phase_2("aclnnTestAdd", executor, size)
    """)


def test_a_tensor_destroyed_between_the_phases_is_noticed(run: Run) -> None:
    run("""
        value = torch.ones(2, device="npu")
        made = tensor(value)
        prepared = phase_1("aclnnTestAdd", made, made, made)
        destroy(made)
        with raises("phase 2: 161002"):
            phase_2("aclnnTestAdd", *prepared)
    """)


def test_kernels_compiled_by_other_means_do_not_compile(tmp_path: Path) -> None:
    write_kernels(
        tmp_path, "#undef CUSTOM_PYPTO_SIM_ABI\n#include <custom_pypto_simulator/aclnn.h>\n"
    )
    message = r"error: #error .compile simulated kernels with `custom-pypto-sim kernels`"
    with pytest.raises(BuildError, match=rf"vendor 'mine': compiling (.|\n)*{message}"):
        build_kernels([tmp_path], tmp_path / "opp")


def test_an_outdated_library_is_refused_by_name(run: Run) -> None:
    run("""
        value = torch.ones(2, device="npu")
        with raises(
            "phase 1: 561000: ",
            "aclnnTestOutdated: its library was built for another simulator: for torch 2.13.0, "
            "simulator headers of last year, not for torch 2.13.0",
            "build it again with `custom-pypto-sim kernels`",
        ):
            launch_tensors("aclnnTestOutdated", value, value)
        assert value.add(1).cpu().tolist() == [2, 2]
    """)
