"""The build refuses a plugin that import would refuse, with the same text."""

import pytest
from build_project import SOURCES, BuildFailedError, Project, found_first, tiny_project
from custom_pypto_contract.variables import BUILD_CHECK

CHECKED = {BUILD_CHECK: "1"}
REAL_CPP = """
#include <torch/csrc/stable/ops.h>
#include "ops.h"
static ops::tiny::Outputs same(const ops::tiny::Arguments& a, const ops::tiny::CallShape&) {
  return {torch::stable::clone(a.self)};
}
CUSTOM_PYPTO_PLUGIN(plugin) {
  plugin.def<ops::tiny>().impl<&same>("CPU");
  plugin.def<ops::tiny_b>();
}
"""
MODULE = "src/custom_pypto_tiny/__init__.py"
PYTHON_OPS = """\
[tiny]
schema = "tiny(Tensor x) -> Tensor"
outputs.y = { like = "x" }
"""
PYTHON_KERNELS = """\
from custom_pypto_plugin import hookimpl
@hookimpl
def custom_pypto_kernels():
    return {'tiny': {'CPU': lambda x: x + 1}}
"""


def refusal(project: Project, hook: str = "build_wheel", **env: str) -> str:
    with pytest.raises(BuildFailedError) as caught:
        project.hook(hook, project.root / "dist", env={**CHECKED, **env})
    assert "Traceback" not in str(caught.value)
    return str(caught.value)


def test_an_undefined_symbol(project: Project) -> None:
    project.write("csrc/more.cpp", "int missing();\nint more() { return missing(); }\n")
    flags = {"LDFLAGS": "-Wl,--unresolved-symbols=ignore-all -Wl,-z,now"}
    error = refusal(project, "build_editable", **flags)
    assert "error: the plugin 'tiny' is refused: the library cannot be opened: " in error
    assert "custom_pypto_tiny/lib/libcustom_pypto_tiny.so: undefined symbol" in error
    assert "; a symbol of torch means that the plugin needs a newer torch, any other " in error
    assert "/tmp/custom-pypto-" not in error
    assert not (project.root / "src/custom_pypto_tiny/lib").exists()


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A plugin that core can load, compiled once, with modules around its package."""
    table = 'opp = "opp"\nrequires-ops = ["an_op_that_is_not_installed"]\n'
    made = tiny_project(tmp_path_factory.mktemp("real"), SOURCES + table)
    made.write("csrc/tiny.cpp", REAL_CPP)
    made.write("src/custom_pypto_tiny_more.py", "NUMBER = 3\n")
    # A package with the name of the opp folder.
    made.write("opp/vendors/config.ini", "load_priority=tiny\n")
    made.write("src/custom_pypto_tiny/npu/opp/__init__.py", "NUMBER = 3\n")
    imports = ("custom_pypto_tiny_more", "custom_pypto_tiny.npu.opp")
    made.write(MODULE, "".join(f"from {each} import NUMBER\n" for each in imports))
    return made


def test_a_plugin_that_is_right_is_built(real: Project) -> None:
    # A lock file allows what is installed, not what is being built.
    wheel = real.wheel({**CHECKED, "CUSTOM_PYPTO_LOCKFILE": "/nowhere"})
    assert "not imported" not in real.output
    assert wheel.manifest["requires_ops"] == ["an_op_that_is_not_installed"]
    assert wheel.manifest["kernels"] == {"tiny": ["CPU"], "tiny.b": []}


@pytest.fixture
def of_python(project: Project) -> Project:
    """A plugin without a library, so that nothing is compiled."""
    project.configure("")
    project.write("ops.toml", PYTHON_OPS)
    project.write(MODULE, PYTHON_KERNELS)
    return project


def test_a_plugin_that_ends_the_process(of_python: Project) -> None:
    """How else it can end it: core/tests/test_cli_subprocess_call.py."""
    of_python.write(MODULE, "import os\nos.abort()\n")
    assert "error: the plugin 'tiny' is refused: it crashed with SIGABRT" in refusal(of_python)


def test_a_module_that_imports_core(of_python: Project) -> None:
    of_python.write(MODULE, f"import custom_pypto.core\n{PYTHON_KERNELS}")
    assert "and was imported before it, so that its hooks are not there yet" in refusal(of_python)


def test_torch_that_cannot_be_imported_checks_nothing(of_python: Project) -> None:
    torch = of_python.write("broken/torch/__init__.py", "raise ImportError('no libtorch')\n")
    of_python.wheel({**CHECKED, **found_first(torch.parents[1])})
    assert "not imported to check it: torch cannot be imported: no libtorch" in of_python.output


def test_a_definition_that_names_what_torch_does_not_have(of_python: Project) -> None:
    definition = "[tiny]\ndefinition = 'torch.sofmax(x, 0)'\n"
    of_python.write("ops.toml", PYTHON_OPS.replace("[tiny]\n", definition))
    error = refusal(of_python)
    assert "is refused: tiny: its definition in ops.toml names torch.sofmax, wh" in error


# As kernel_report.h reports a launch by name.
LAUNCH_CPP = r"""
#include <cstddef>
#include <cstring>
#include <string>
extern "C" __attribute__((visibility("default"))) std::size_t custom_pypto_npu_launches_v1(
    char* text, std::size_t size) {
  const std::string report =
      "launch\taclnnTiny\ntypes\taclTensor *,int64_t,aclTensor *\narguments\ta.self, a.k, out.y\n"
      "package\t/op_api/lib/libcust_opapi.so\n";
  if (size > report.size()) std::memcpy(text, report.c_str(), report.size() + 1);
  return report.size() + 1;
}
"""


DECLARED = """\
aclnnStatus aclnnTinyGetWorkspaceSize(const aclTensor *self, double k, const aclTensor *out,
    uint64_t *workspaceSize, aclOpExecutor **executor);
"""


def test_a_launch_is_as_its_own_package_declares_it(real: Project) -> None:
    real.write("csrc/launch.cpp", LAUNCH_CPP)
    header = real.write("opp/vendors/tiny/op_api/include/aclnn_tiny.h", DECLARED)
    difference = "argument 2, `a.k`, is passed as int64_t; the header has `double k`"
    error = refusal(real)
    assert "is refused: aclnnTiny is launched with other arguments than its header" in error
    assert f"\n  {difference}\n  the header is {header}:1\n  the plugin is {real.root}/" in error


def test_a_requirement_that_is_not_installed_leaves_it_unchecked(of_python: Project) -> None:
    text = (of_python.root / "pyproject.toml").read_text()
    dependencies = 'version = "0.3.0"\ndependencies = ["a-distribution-that-nobody-has>=1"]'
    of_python.write("pyproject.toml", text.replace('version = "0.3.0"', dependencies))
    of_python.write(MODULE, "import a_module_that_nobody_has\n")
    of_python.wheel(CHECKED)
    assert "the plugin was not imported to check it: importing its module" in of_python.output
    assert "not installed: a-distribution-that-nobody-has>=1" in of_python.output
