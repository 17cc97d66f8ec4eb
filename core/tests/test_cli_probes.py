"""custom_pypto_cli.probes: what the doctor looks at, part by part."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from cli_records import ADD_KERNEL, MISSING_KERNEL
from custom_pypto_cli import child, distribution, records
from custom_pypto_cli.probes import cann, core, machine, npu_kernels, torch, variables
from custom_pypto_cli.probes.probe import Level, Probe
from custom_pypto_cli.probes.trial import Trial
from custom_pypto_contract.variables import KNOWN
from custom_pypto_discovery import lock_file
from custom_pypto_discovery.installed_plugin import InstalledPlugin


def by_name(probes) -> dict[str, Probe]:
    return {probe.name: probe for probe in probes}


def install(site: Path, name: str, version: str, source: str = "") -> None:
    """Put a module and its metadata into the folder `site`."""
    info = site / f"{name}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (site / f"{name}.py").write_text(source)


@pytest.fixture
def site(monkeypatch, tmp_path) -> Path:
    """Give a folder in which modules are found before all others."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    return folder


class TestMachine:
    def test_names_python_and_its_place(self):
        python = by_name(machine.probes(Trial()))["python"]
        assert python.value.endswith(f"({sys.executable})")
        assert python.level is Level.OK

    def test_an_old_python_is_a_problem(self, monkeypatch):
        monkeypatch.setattr(machine, "OLDEST_PYTHON", (99, 0))
        python = by_name(machine.probes(Trial()))["python"]
        assert python.level is Level.PROBLEM
        assert python.advice == "make an environment with Python 99.0 or newer"

    @pytest.mark.parametrize(
        ("line", "features"),
        [
            ("flags\t\t: fpu avx2 fma sse", ["avx2", "fma"]),
            ("Features\t: fp asimd sve i8mm", ["asimd", "i8mm"]),
        ],
    )
    def test_reads_the_features_of_x86_and_arm(self, tmp_path, line, features):
        cpuinfo = tmp_path / "cpuinfo"
        cpuinfo.write_text(f"processor : 0\n{line}\n")
        assert machine.cpu_features(cpuinfo) == features

    def test_features_are_unknown_where_there_is_no_cpuinfo(self, tmp_path):
        assert machine.cpu_features(tmp_path / "none") == []


class TestTorch:
    def test_says_that_torch_can_be_imported(self, site):
        install(site, "torch", "2.13.0")
        found = by_name(torch.probes(Trial()))
        assert found["torch"] == Probe("torch", "2.13.0")
        assert found["import torch"].value.startswith("ok, ")

    def test_torch_that_is_too_old_is_a_problem(self, site):
        install(site, "torch", "2.9.1+cpu")
        found = by_name(torch.probes(Trial()))["torch"]
        assert found.level is Level.PROBLEM
        assert found.advice == "pip install --upgrade 'torch>=2.10'"

    def test_torch_that_fails_by_loading_torch_npu_is_reported_as_such(self, site, monkeypatch):
        monkeypatch.delenv("TORCH_DEVICE_BACKEND_AUTOLOAD", raising=False)
        install(
            site,
            "torch",
            "2.13.0",
            "import os\n"
            "if os.environ.get('TORCH_DEVICE_BACKEND_AUTOLOAD') != '0': raise OSError('libhccl')\n",
        )
        install(site, "torch_npu", "2.13.0")
        found = by_name(torch.probes(Trial()))
        assert "torch loads torch_npu 2.13.0 by itself" in found["import torch"].remark
        assert "TORCH_DEVICE_BACKEND_AUTOLOAD=0" in found["import torch"].advice
        assert found["import torch_npu"].level is Level.OK

    def test_torch_npu_that_cannot_be_imported_is_a_problem(self, site):
        install(site, "torch", "2.13.0")
        install(site, "torch_npu", "2.13.0", "raise ImportError('libascendcl.so')")
        found = by_name(torch.probes(Trial()))["import torch_npu"]
        assert found.level is Level.PROBLEM
        assert "ImportError: libascendcl.so" in found.remark

    @pytest.mark.parametrize("is_installed", [True, False])
    def test_the_simulator_is_advised_where_cann_is_missing(self, site, monkeypatch, is_installed):
        monkeypatch.delenv("TORCH_DEVICE_BACKEND_AUTOLOAD", raising=False)
        missing = "ImportError('libhccl.so: cannot open shared object file: No such file')"
        install(
            site,
            "torch",
            "2.13.0",
            "import os\n"
            f"if os.environ.get('TORCH_DEVICE_BACKEND_AUTOLOAD') != '0': raise {missing}\n",
        )
        install(site, "torch_npu", "2.13.0", f"raise {missing}")
        versions = {"torch": "2.13.0", "torch_npu": "2.13.0"}
        if is_installed:
            versions["custom-pypto-simulator"] = "0.1.0"
        monkeypatch.setattr(torch.distribution, "version", versions.get)
        found = by_name(torch.probes(Trial()))
        for name in ("import torch", "import torch_npu"):
            assert ("`custom-pypto-sim run --`" in found[name].advice) is is_installed

    def test_the_simulator_is_no_advice_for_another_failure(self, site, monkeypatch):
        install(site, "torch", "2.13.0")
        install(site, "torch_npu", "2.13.0", "raise ImportError('built for torch 2.12')")
        monkeypatch.setattr(torch.distribution, "version", lambda name: "2.13.0")
        found = by_name(torch.probes(Trial()))["import torch_npu"]
        assert "custom-pypto-sim" not in found.advice

    def test_no_torch_is_a_problem(self, monkeypatch):
        monkeypatch.setattr(torch.distribution, "version", lambda name: None)
        (found,) = torch.probes(Trial())
        assert found.remark == "torch is not installed"


class TestCann:
    @pytest.fixture(autouse=True)
    def _unset(self, monkeypatch):
        for name in cann.FOLDERS:
            monkeypatch.delenv(name, raising=False)

    def test_variables_that_are_not_set_are_reported(self):
        assert [(probe.value, probe.level) for probe in cann.probes(Trial())] == (
            [("not set", Level.OK)] * 3
        )

    def test_a_folder_that_is_not_there_is_a_problem(self, monkeypatch, tmp_path):
        monkeypatch.setenv("ASCEND_CUSTOM_OPP_PATH", f"{tmp_path}:{tmp_path}/none")
        found = by_name(cann.probes(Trial()))["ASCEND_CUSTOM_OPP_PATH"]
        assert found.remark == f"ASCEND_CUSTOM_OPP_PATH names {tmp_path}/none, which is not there"

    def test_a_folder_that_is_there_is_well(self, monkeypatch, tmp_path):
        monkeypatch.setenv("ASCEND_HOME_PATH", str(tmp_path))
        found = by_name(cann.probes(Trial()))["ASCEND_HOME_PATH"]
        assert found == Probe("ASCEND_HOME_PATH", str(tmp_path))

    def test_torch_npu_without_cann_is_worth_a_note(self, site):
        install(site, "torch_npu", "2.13.0")
        found = by_name(cann.probes(Trial()))["ASCEND_HOME_PATH"]
        assert found.level is Level.NOTE


class TestCore:
    def test_finds_its_own_package(self):
        found = by_name(core.probes(Trial()))["custom_pypto"]
        assert found.level is Level.OK

    def test_a_package_of_that_name_elsewhere_is_a_problem(self, site, monkeypatch):
        # Another test may have imported the real one.
        monkeypatch.delitem(sys.modules, "custom_pypto", raising=False)
        (site / "custom_pypto").mkdir()
        (site / "custom_pypto" / "__init__.py").write_text("")
        found = by_name(core.probes(Trial()))["custom_pypto"]
        assert found.level is Level.PROBLEM
        assert f"finds {site}/custom_pypto/__init__.py, which hides core's own" in found.remark

    def test_a_distribution_that_ships_into_the_package_is_a_problem(self, site):
        install(site, "intruding", "1.0")
        record = site / "intruding-1.0.dist-info" / "RECORD"
        record.write_text("intruding.py,,\ncustom_pypto/__init__.py,,\n")
        found = by_name(core.probes(Trial()))["intruder"]
        assert found.value == "intruding: custom_pypto/__init__.py"
        assert found.advice.startswith("pip uninstall intruding, then reinstall custom-pypto-core")

    def test_core_without_metadata_is_a_problem(self, monkeypatch):
        monkeypatch.setattr(core.distribution, "version", lambda name: None)
        found = by_name(core.probes(Trial()))["custom-pypto-core"]
        assert found.advice == "pip install custom-pypto-core"

    def test_core_with_broken_metadata_is_a_problem(self, site):
        install(site, "custom_pypto_core", "0.1.0")
        (site / "custom_pypto_core-0.1.0.dist-info" / "METADATA").write_bytes(b"\xff\xfe")
        found = by_name(core.probes(Trial()))["custom-pypto-core"]
        assert found.remark == "the metadata of custom-pypto-core cannot be read"


class TestVariables:
    @pytest.fixture(autouse=True)
    def _unset(self, monkeypatch):
        # Also what steers the tests themselves.
        for name in [name for name in os.environ if name.startswith(variables.PREFIX)]:
            monkeypatch.delenv(name)

    def test_says_that_none_is_set(self):
        assert list(variables.probes(Trial())) == [Probe("CUSTOM_PYPTO_*", "none is set")]

    def test_shows_each_that_is_set(self, monkeypatch):
        monkeypatch.setenv("CUSTOM_PYPTO_STRICT", "1")
        assert list(variables.probes(Trial())) == [Probe("CUSTOM_PYPTO_STRICT", "'1'")]

    def test_a_lock_file_that_cannot_be_used_is_a_problem(self, monkeypatch, tmp_path):
        monkeypatch.setenv("CUSTOM_PYPTO_LOCKFILE", str(tmp_path / "gone"))
        (found,) = variables.probes(Trial())
        assert found.remark.startswith(f"no plugin may load: the lock file {tmp_path}/gone cannot")
        assert found.advice == (
            f"lock what is installed: custom-pypto lock {tmp_path}/gone; or unset"
            " CUSTOM_PYPTO_LOCKFILE"
        )

    def test_a_lock_file_that_can_be_used_is_well(self, monkeypatch, tmp_path):
        path = tmp_path / "ops.lock"
        path.write_text(lock_file.text_of([]))
        monkeypatch.setenv("CUSTOM_PYPTO_LOCKFILE", str(path))
        assert list(variables.probes(Trial())) == [Probe("CUSTOM_PYPTO_LOCKFILE", repr(str(path)))]

    def test_a_misspelt_variable_is_a_problem_with_the_right_name(self, monkeypatch):
        monkeypatch.setenv("CUSTOM_PYPTO_PLUGIN", "add_custom")
        (found,) = variables.probes(Trial())
        assert found.remark == "custom_pypto does not read CUSTOM_PYPTO_PLUGIN"
        assert found.advice == "did you mean CUSTOM_PYPTO_PLUGINS?"

    @pytest.mark.parametrize("name", ["CUSTOM_PYPTO_TOKEN", "CUSTOM_PYPTO_SIM_TOKEN"])
    def test_the_value_of_an_unknown_variable_is_not_shown(self, monkeypatch, name):
        monkeypatch.setenv(name, "a secret")
        (found,) = variables.probes(Trial())
        assert found.name == name
        assert "secret" not in repr(found)

    def test_a_variable_like_no_other_gives_all(self, monkeypatch):
        monkeypatch.setenv("CUSTOM_PYPTO_THREADS", "1")
        (found,) = variables.probes(Trial())
        assert found.advice == f"there are {', '.join(KNOWN)}"

    @pytest.mark.parametrize(
        ("name", "is_read"),
        [
            ("CUSTOM_PYPTO_FIRST_ORDER", True),
            ("CUSTOM_PYPTO_FIRST_ORDERS", False),
            ("CUSTOM_PYPTO_FIRST_ORDE", False),
            ("CUSTOM_PYPTO_ORDER", False),
        ],
    )
    def test_a_variable_that_a_plugin_reads_is_no_problem(
        self, monkeypatch, tmp_path, name, is_read
    ):
        (tmp_path / "library.so").write_bytes(b"\0CUSTOM_PYPTO_FIRST_ORDER\0CUSTOM_PYPTO_ORDER\0")
        plugin = InstalledPlugin("first", "acme_first", "acme-first", "1.0", tmp_path)
        monkeypatch.setattr(variables.candidates, "find", lambda: (plugin,))
        monkeypatch.setenv(name, "1")
        (found,) = variables.probes(Trial())
        assert (found.level is Level.OK) is is_read

    def test_a_variable_of_the_simulator_is_no_problem(self, monkeypatch):
        monkeypatch.setenv("CUSTOM_PYPTO_SIM_DEVICES", "2")
        assert list(variables.probes(Trial())) == [Probe("CUSTOM_PYPTO_SIM_DEVICES", "set")]

    def test_a_value_without_effect_is_a_problem(self, monkeypatch):
        monkeypatch.setenv("CUSTOM_PYPTO_DISABLE", "not_installed")
        (found,) = variables.probes(Trial())
        assert found.level is Level.PROBLEM
        assert "'not_installed'" in found.remark


class TestNpuKernels:
    @pytest.fixture
    def outcome(self, monkeypatch):
        """Give a way to say how the search ends."""
        monkeypatch.setattr(distribution, "version", lambda name: "2.13.0")

        def end(**fields):
            monkeypatch.setattr(child, "call", lambda function, **options: child.Outcome(**fields))

        return end

    def test_nothing_is_searched_without_torch_npu(self, monkeypatch):
        monkeypatch.setattr(distribution, "version", lambda name: None)
        [probe] = npu_kernels.probes(Trial())
        assert "torch_npu is not installed" in probe.value
        assert probe.level is Level.OK

    def test_each_kernel_is_a_line(self, outcome):
        outcome(value={"add_custom": [records.as_json(ADD_KERNEL)]})
        [probe] = npu_kernels.probes(Trial())
        assert (probe.name, probe.level) == ("add_custom", Level.OK)
        assert probe.value == "aclnnAdd of CANN (/cann/lib64/libopapi.so)"

    def test_a_kernel_for_another_npu_is_a_note_with_what_is_launched_instead(self, outcome):
        unfit = "/site/lib/libx_ascendc_dav-3510.so: not used: it was compiled for dav-3510"
        outcome(value={"add_custom": [records.as_json(replace(ADD_KERNEL, searched=(unfit,)))]})
        [probe] = npu_kernels.probes(Trial())
        assert (probe.level, probe.remark) == (Level.NOTE, unfit)
        assert probe.advice == "until then the op launches aclnnAdd"

    def test_missing_kernel_is_a_note_with_the_places(self, outcome):
        outcome(value={"add_custom": [records.as_json(MISSING_KERNEL)]})
        [probe] = npu_kernels.probes(Trial())
        assert (probe.name, probe.level) == ("add_custom: aclnnOther", Level.NOTE)
        assert "CANN: libopapi.so: not there" in probe.remark

    def test_other_arguments_than_the_header_s_are_a_problem(self, outcome):
        wrong = replace(ADD_KERNEL, mismatch="aclnnAdd is launched with other arguments")
        outcome(value={"add_custom": [records.as_json(wrong)]})
        [probe] = npu_kernels.probes(Trial())
        assert (probe.level, probe.remark) == (Level.PROBLEM, wrong.mismatch)
        assert "install the opp package that the plugin was written for" in probe.advice

    def test_a_wrong_kernel_is_shown_with_the_package_that_it_shadows(self, outcome):
        other = Path("/other/op_api/lib/libcust_opapi.so")
        wrong = replace(ADD_KERNEL, mismatch="other arguments", shadowed=(other,))
        outcome(value={"add_custom": [records.as_json(wrong)]})
        [probe] = npu_kernels.probes(Trial())
        assert probe.remark.startswith(f"other arguments\naclnnAdd is also in {other}; ")

    def test_a_kernel_that_must_not_be_used_is_a_problem(self, outcome):
        fault = "aclnnOther: the kernel's two functions are in two libraries"
        outcome(value={"add_custom": [records.as_json(replace(MISSING_KERNEL, fault=fault))]})
        [probe] = npu_kernels.probes(Trial())
        assert (probe.level, probe.remark) == (Level.PROBLEM, fault)

    def test_a_kernel_without_a_header_is_said_to_be_unchecked(self, outcome):
        reason = "no header in /cann/include declares aclnnAdd"
        outcome(value={"add_custom": [records.as_json(replace(ADD_KERNEL, unchecked=reason))]})
        [probe] = npu_kernels.probes(Trial())
        assert probe.level is Level.OK
        assert probe.value.endswith(f"; unchecked: {reason}")

    def test_packages_that_shadow_one_another_are_named(self, outcome):
        other = Path("/other/op_api/lib/libcust_opapi.so")
        outcome(value={"add_custom": [records.as_json(replace(ADD_KERNEL, shadowed=(other,)))]})
        [probe] = npu_kernels.probes(Trial())
        assert probe.level is Level.NOTE
        assert probe.remark == (
            f"aclnnAdd is also in {other}; {ADD_KERNEL.library} is found first and wins"
        )
        assert "load_priority" in probe.advice

    def test_failed_search_is_a_problem(self, outcome):
        outcome(failure="crashed with SIGSEGV")
        [probe] = npu_kernels.probes(Trial())
        assert probe.level is Level.PROBLEM
        assert "SIGSEGV" in probe.remark
