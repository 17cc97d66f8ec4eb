"""What only advance_step's own kernel does, which is launched directly."""

from worker import RunCode, Start


def test_takes_what_aclnn_does_not(start: Start, queue: int) -> None:
    start("custom", queue).run("direct.agrees_with_the_cpu_where_aclnn_does_not_apply")


def test_gives_no_slot_where_the_cpu_refuses(start: Start) -> None:
    assert start("custom").run("direct.gives_no_slot_where_the_cpu_refuses") == [-1, -1, -1]


def test_without_it_int32_is_refused_with_the_way_out(start: Start) -> None:
    message = start("stock").run("direct.refusal_of_int32")
    assert message.startswith("npu_advance_step_flashattn: argument 'input_tokens' must be int64, ")
    assert "adv_step_flash has none, where the plugin was built with CANN" in message


def test_without_any_kernel_the_error_says_how_to_get_one(run_code: RunCode) -> None:
    code = """
import os, torch, torch_npu, custom_pypto
del os.environ["ASCEND_CUSTOM_OPP_PATH"]
ints = torch.zeros(6, 2, dtype=torch.int64, device="npu")
try:
    torch.ops.custom_pypto.npu_advance_step_flashattn(*ints[:5], ints[5:].t(), 2, 2, 16)
except RuntimeError as error:
    print(error)
"""
    printed = run_code("stock", code)
    assert "no NPU kernel for it, which would be one of adv_step_flash, aclnnAdvance" in printed
    assert "install the plugin from its source after `source <CANN folder>/set_env.sh`" in printed
