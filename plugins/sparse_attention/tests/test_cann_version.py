"""The order of CANN's versions."""

from pathlib import Path

from cpp_library import TORCH, compile_command, run

TESTS = Path(__file__).parent
VERSIONS = (
    *("8.1.RC1.alpha001", "8.1.RC1.beta1", "8.1.RC1", "8.3.RC1", "8.3.RC2", "8.5.0.alpha001"),
    *("8.5.0-alpha.2", "8.5.0.alpha003", "8.5.0.alpha010", "8.5.0.beta1", "8.5.0-rc.1", "8.5.0"),
    *("8.5.1.alpha001", "8.5.1", "8.10.0", "9.0.0-alpha", "9.0.0"),
)
NO_VERSIONS = (
    *("", "8", "8.5", "8.5.", "8..0", "8.5.T10", "8.5.0.T10", "8.5.0.alpha1.beta2.rc3", "latest"),
    *("8.5.0.alpha1x", "99999999999999999999.1.0"),
)


def test_versions_of_cann_are_ordered_as_they_were_released(tmp_path: Path) -> None:
    program, source = tmp_path / "compare", TESTS / "cpp" / "cann_version.cpp"
    command = compile_command(f"-I{TESTS.parent / 'csrc'}", source, "-o", program)
    run([*command, f"-L{TORCH / 'lib'}", f"-Wl,-rpath={TORCH / 'lib'}", "-ltorch_cpu", "-ldl"])
    count, others = len(VERSIONS), len(NO_VERSIONS)
    rows = [">" * i + "=" + "<" * (count - i - 1) + "?" * others for i in range(count)]
    rows += ["?" * (count + others)] * others
    assert run([str(program), *VERSIONS, *NO_VERSIONS]).splitlines() == rows
    assert run([str(program), "8.5.0.alpha003", "8.5.0-alpha.3"]) == "==\n==\n"
