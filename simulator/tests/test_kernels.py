"""Simulated kernels under both phases of an aclnn call: search, arguments, workspace, failures."""

from __future__ import annotations

from pathlib import Path

import pytest
from custom_pypto_simulator_build import BuildError, build_kernels
from script import Run, write_kernels


def test_a_kernel_is_found_through_ascend_custom_opp_path(run: Run, opp: Path) -> None:
    run(
        """
        from launch import launch_tensors
        a, b = torch.randn(3, 4), torch.randn(4, 3)
        out = torch.empty(3, 4, device="npu")
        launch_tensors("aclnnTestAdd", a.npu(), b.npu().T, out)
        assert out.cpu().equal(a + b.T)
    """,
        ASCEND_CUSTOM_OPP_PATH=opp,
    )


def test_a_kernel_is_found_through_the_vendors_folder(run: Run, opp: Path) -> None:
    run(
        """
        from launch import address
        assert address("aclnnTestAddGetWorkspaceSize")
    """,
        ASCEND_OPP_PATH=opp.parents[1],
    )


def test_a_kernel_receives_what_was_marshalled(run: Run, opp: Path) -> None:
    result = run(
        """
        import ctypes
        from launch import _function, destroy, launch, tensor
        whole = torch.zeros(4, 6, dtype=torch.int32, device="npu")
        out = torch.zeros(300, dtype=torch.uint8, device="npu")
        def made(name, values, ctype):
            create = _function(name, ctypes.c_void_p)
            count = ctypes.c_uint64(len(values))
            return ctypes.c_void_p(create((ctype * len(values))(*values), count))
        first, second = tensor(whole), tensor(whole)
        inputs = made("aclCreateTensorList", [first.value, second.value], ctypes.c_void_p)
        number = ctypes.c_double(1.5)
        scalar = ctypes.c_void_p(_function("aclCreateScalar", ctypes.c_void_p)(
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
        ASCEND_CUSTOM_OPP_PATH=opp,
    )
    assert result.stdout.splitlines()[-1] == (
        "3 3 | 6 2 | 6 | 3 | 0 | 2 | 1.5 | 7 -8 | 1 0 | text | -9 | 0.25 | 1 | BFloat16"
    )


def test_a_kernel_computes_in_its_workspace(run: Run, opp: Path) -> None:
    run(
        """
        from launch import launch_tensors
        a, out = torch.randn(5), torch.empty(5, device="npu")
        launch_tensors("aclnnTestWorkspace", a.npu(), out)
        assert out.cpu().equal(a + a)
    """,
        ASCEND_CUSTOM_OPP_PATH=opp,
    )


def test_a_plan_that_throws_fails_phase_1(run: Run, opp: Path) -> None:
    run(
        """
        from launch import LaunchError, launch_tensors
        value = torch.ones(2, dtype=torch.int32, device="npu")
        try:
            launch_tensors("aclnnTestWorkspace", value, value)
        except LaunchError as error:
            assert "phase 1: 161002" in str(error) and "self must be float32" in str(error)
        else:
            raise AssertionError
    """,
        ASCEND_CUSTOM_OPP_PATH=opp,
    )


def test_the_contiguous_plan_refuses_each_strided_tensor(run: Run, opp: Path) -> None:
    run(
        """
        import ctypes
        from launch import LaunchError, _function, destroy, launch, tensor
        def call(first, second, other, out):
            elements = [tensor(first).value, tensor(second).value]
            create = _function("aclCreateTensorList", ctypes.c_void_p)
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
    """,
        ASCEND_CUSTOM_OPP_PATH=opp,
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("aclnnTestThrow", "this kernel always fails"),
        ("aclnnTestAssign", "write into it with copy_"),
    ],
)
def test_a_kernel_that_fails_shows_at_the_synchronisation(
    run: Run, opp: Path, name: str, text: str
) -> None:
    run(
        f"""
        from launch import launch_tensors
        value = torch.ones(2, device="npu")
        launch_tensors("{name}", value, value)
        try:
            torch.npu.synchronize()
        except RuntimeError as error:
            assert "{text}" in str(error), error
        else:
            raise AssertionError
    """,
        ASCEND_CUSTOM_OPP_PATH=opp,
    )


def test_an_executor_cannot_be_used_twice(run: Run, opp: Path) -> None:
    run(
        """
        import ctypes
        from launch import _function, tensor
        value = torch.ones(2, device="npu")
        size, executor = ctypes.c_uint64(), ctypes.c_void_p()
        made = tensor(value)
        assert _function("aclnnTestAddGetWorkspaceSize")(
            made, made, made, ctypes.byref(size), ctypes.byref(executor)) == 0
        stream = ctypes.c_void_p(torch.npu.current_stream().npu_stream)
        codes = [_function("aclnnTestAdd")(None, size, executor, stream) for _ in range(2)]
        assert codes == [0, 561101]
    """,
        ASCEND_CUSTOM_OPP_PATH=opp,
    )


def test_a_tensor_destroyed_between_the_phases_is_noticed(run: Run, opp: Path) -> None:
    run(
        """
        import ctypes
        from launch import _function, destroy, tensor
        value = torch.ones(2, device="npu")
        size, executor, made = ctypes.c_uint64(), ctypes.c_void_p(), tensor(value)
        _function("aclnnTestAddGetWorkspaceSize")(
            made, made, made, ctypes.byref(size), ctypes.byref(executor))
        destroy("Tensor", made)
        stream = ctypes.c_void_p(torch.npu.current_stream().npu_stream)
        assert _function("aclnnTestAdd")(None, size, executor, stream) == 161002
    """,
        ASCEND_CUSTOM_OPP_PATH=opp,
    )


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
        from launch import LaunchError, launch_tensors
        value = torch.ones(2, device="npu")
        try:
            launch_tensors("aclnnTestAdd", value, value, value)
        except LaunchError as error:
            text = str(error)
            assert "phase 1: 561000: " in text, text
            assert "aclnnTestAdd: its library was built for another simulator: for torch " in text
            assert "2.13.0, simulator headers of last year, not for torch 2.13.0" in text, text
            assert text.endswith("build it again with `custom-pypto-sim kernels`"), text
        else:
            raise AssertionError
        assert value.add(1).cpu().tolist() == [2, 2]
    """,
        ASCEND_CUSTOM_OPP_PATH=outdated,
    )
