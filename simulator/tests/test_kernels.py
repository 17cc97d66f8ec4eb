"""Simulated kernels under both phases of an aclnn call: search, arguments, workspace, failures."""

from __future__ import annotations

from pathlib import Path

import pytest
from custom_pypto_simulator_build import BuildError, build_kernels
from script import Run, write_kernels


def test_a_kernel_is_found_through_ascend_custom_opp_path(run: Run) -> None:
    run("""
        a, b = torch.randn(3, 4), torch.randn(4, 3)
        out = torch.empty(3, 4, device="npu")
        launch_tensors("aclnnTestAdd", a.npu(), b.npu().T, out)
        assert out.cpu().equal(a + b.T)
    """)


def test_a_kernel_is_found_through_the_vendors_folder(run: Run, opp: Path) -> None:
    run(
        """
        assert address("aclnnTestAddGetWorkspaceSize")
    """,
        ASCEND_CUSTOM_OPP_PATH="",
        ASCEND_OPP_PATH=opp.parents[1],
    )


def test_a_kernel_receives_what_was_marshalled(run: Run) -> None:
    run(
        """
        whole = torch.zeros(4, 6, dtype=torch.int32, device="npu")
        out = torch.zeros(300, dtype=torch.uint8, device="npu")
        def made(name, values, ctype):
            create = function(name, ctypes.c_void_p)
            count = ctypes.c_uint64(len(values))
            return ctypes.c_void_p(create((ctype * len(values))(*values), count))
        first, second = tensor(whole), tensor(whole)
        inputs = made("aclCreateTensorList", [first.value, second.value], ctypes.c_void_p)
        number = ctypes.c_double(1.5)
        scalar = ctypes.c_void_p(function("aclCreateScalar", ctypes.c_void_p)(
            ctypes.byref(number), ctypes.c_int(11)))
        integers = made("aclCreateIntArray", [7, -8], ctypes.c_int64)
        flags = made("aclCreateBoolArray", [True, False], ctypes.c_bool)
        view, result = tensor(whole[1:, ::2]), tensor(out)
        launch("aclnnTestDescribe", view, None, inputs, scalar, integers, flags, b"text",
               ctypes.c_int64(-9), ctypes.c_double(0.25), ctypes.c_bool(True), ctypes.c_int(27),
               result)
        print(bytes(out.cpu().tolist()).rstrip(b"\\0").decode())
        destroy("Tensor", view, result)
        destroy("TensorList", inputs)
        destroy("Scalar", scalar)
        destroy("IntArray", integers)
        destroy("BoolArray", flags)
        live = sim.live_objects()
        assert not any(live[kind] for kind in ("tensor", "tensor list", "scalar", "int array",
                                               "bool array", "executor")), live
    """,
        prints="3 3 | 6 2 | 6 | 3 | 0 | 2 | 1.5 | 7 -8 | 1 0 | text | -9 | 0.25 | 1 | BFloat16",
    )


def test_a_kernel_computes_in_its_workspace(run: Run) -> None:
    run("""
        a, out = torch.randn(5), torch.empty(5, device="npu")
        launch_tensors("aclnnTestWorkspace", a.npu(), out)
        assert out.cpu().equal(a + a)
    """)


def test_a_plan_that_throws_fails_phase_1(run: Run) -> None:
    run("""
        value = torch.ones(2, dtype=torch.int32, device="npu")
        with raises("phase 1: 161002", "self must be float32"):
            launch_tensors("aclnnTestWorkspace", value, value)
    """)


def test_the_contiguous_plan_refuses_each_strided_tensor(run: Run) -> None:
    run("""
        def call(first, second, other, out):
            elements = [tensor(first).value, tensor(second).value]
            create = function("aclCreateTensorList", ctypes.c_void_p)
            inputs = ctypes.c_void_p(
                create((ctypes.c_void_p * 2)(*elements), ctypes.c_uint64(2)))
            others = [tensor(each) for each in (other, out) if each is not None]
            try:
                launch("aclnnTestContiguous", inputs, None if other is None else others[0],
                       others[-1])
            except LaunchError as error:
                return str(error)
            finally:
                destroy("Tensor", *others)
                destroy("TensorList", inputs)
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


def test_a_kernel_that_fails_before_a_copy_is_named_in_the_warning_of_torch_npu(run: Run) -> None:
    # Its error has no text of CANN.
    run(
        """
        value = torch.ones(2, device="npu")
        launch_tensors("aclnnTestThrow", value, value)
        value.cpu()
    """,
        fails="aclnnTestThrow: this kernel always fails",
    )


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
        destroy("Tensor", made)
        with raises("phase 2: 161002"):
            phase_2("aclnnTestAdd", *prepared)
    """)


def test_a_library_that_does_not_compile_shows_the_compiler_output(tmp_path: Path) -> None:
    write_kernels(tmp_path, "int broken( { }")
    with pytest.raises(
        BuildError, match=r"vendor 'mine': compiling (.|\n)*kernels\.cpp:1:.*error:"
    ):
        build_kernels([tmp_path], tmp_path / "opp")


def test_kernels_compiled_by_other_means_do_not_compile(tmp_path: Path) -> None:
    write_kernels(
        tmp_path, "#undef CUSTOM_PYPTO_SIM_ABI\n#include <custom_pypto_simulator/aclnn.h>\n"
    )
    message = "error: #error .compile simulated kernels with `custom-pypto-sim kernels`"
    with pytest.raises(BuildError, match=message):
        build_kernels([tmp_path], tmp_path / "opp")


def test_an_outdated_library_is_refused_by_name(run: Run, outdated: Path) -> None:
    run(
        """
        value = torch.ones(2, device="npu")
        with raises(
            "phase 1: 561000: ",
            "aclnnTestAdd: its library was built for another simulator: for torch 2.13.0, "
            "simulator headers of last year, not for torch 2.13.0",
            "build it again with `custom-pypto-sim kernels`",
        ):
            launch_tensors("aclnnTestAdd", value, value, value)
        assert value.add(1).cpu().tolist() == [2, 2]
    """,
        ASCEND_CUSTOM_OPP_PATH=outdated,
    )
