"""custom-pypto info."""

import json
from dataclasses import replace

import pytest
from cli_records import ADD, ADD_KERNEL, MISSING_KERNEL, CommandLine


def test_shows_a_plugin_with_its_ops(cli: CommandLine) -> None:
    assert cli.run("info", "add_custom") == (
        "plugin        add_custom\n"
        "distribution  custom-pypto-add-custom 0.1.0\n"
        "status        loaded\n"
        "library       /site/custom_pypto_add_custom/lib/libcustom_pypto_add_custom.so\n"
        "CPU ISA       avx2\n"
        "opp folder    -\n"
        "\n"
        "op       torch.ops.custom_pypto.add_custom\n"
        "schema   add_custom(Tensor self, Tensor other) -> Tensor\n"
        "kernels  CPU, PrivateUse1\n"
        "\n"
        "op       torch.ops.custom_pypto.add_custom_backward\n"
        "schema   add_custom_backward(Tensor self) -> (Tensor, Tensor)\n"
        "kernels  CPU\n"
    )


@pytest.mark.parametrize(
    "before", ["", "custom_pypto::", "custom_pypto.", "torch.ops.custom_pypto."]
)
@pytest.mark.parametrize("after", ["", ".default"])
def test_an_op_may_be_written_as_torch_writes_it(cli: CommandLine, before: str, after: str) -> None:
    name = f"{before}add_custom_backward{after}"
    (plugin,) = json.loads(cli.run("info", "--json", name))["plugins"]
    assert plugin["name"] == "add_custom"
    assert [op["name"] for op in plugin["ops"]] == ["add_custom_backward"]


def test_a_distribution_that_is_not_loaded_shows_why(cli: CommandLine) -> None:
    shown = cli.run("info", "custom-pypto-broken")
    assert shown == cli.run("info", "broken")
    assert "plugin        broken\n" in shown
    reason = "its library is missing; reinstall it"
    assert f"status        rejected\n              {reason}\n" in shown


def test_an_instruction_set_that_is_lacking_is_reported(cli: CommandLine) -> None:
    def refuse(plugin: str) -> None:
        raise RuntimeError("no kernels for it")

    cli.use(ADD, cpu_isa=refuse)
    assert "CPU ISA       none: no kernels for it\n" in cli.run("info", "add_custom")


def test_an_unknown_name_gives_near_ones(cli: CommandLine) -> None:
    assert cli.run("info", "ad_custom", status=2) == (
        "custom-pypto info: no installed op or plugin is called 'ad_custom';"
        " did you mean add_custom, add_custom_backward? `custom-pypto list` shows what is"
        " installed; each op is a wheel of its own: in a clone of the project, `pip install"
        " --no-build-isolation ./plugins/<name>`\n"
    )


def test_shows_what_would_run_on_an_npu(cli: CommandLine) -> None:
    third = replace(MISSING_KERNEL, symbols=("aclnnThird",))
    cli.use(ADD, npu_kernels=lambda plugin: (ADD_KERNEL, MISSING_KERNEL, third))
    lines = cli.run("info", "add_custom").splitlines()
    assert "on an NPU  aclnnAdd of CANN (/cann/lib64/libopapi.so)" in lines
    start = lines.index("launches on an NPU  none on this machine: aclnnOther would do")
    assert lines[start + 1].strip() == "searched CANN: libopapi.so: not there"
    assert "launches on an NPU  none on this machine: aclnnThird would do" in lines
    assert "\n".join(lines).count("searched CANN: libopapi.so: not there") == 1


def test_json_has_what_would_run_on_an_npu(cli: CommandLine) -> None:
    cli.use(ADD, npu_kernels=lambda plugin: (ADD_KERNEL,))
    [plugin] = json.loads(cli.run("info", "--json", "add_custom"))["plugins"]
    empty = {"searched": [], "fault": "", "mismatch": "", "unchecked": ""}
    found = {"symbol": "aclnnAdd", "library": "/cann/lib64/libopapi.so", "origin": "CANN"}
    symbols = ["aclnnAddCustom", "aclnnAdd"]
    assert plugin["npu_kernels"] == [{"op": "add_custom", "symbols": symbols, **found, **empty}]
