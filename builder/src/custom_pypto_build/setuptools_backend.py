"""setuptools' own build backend, with the plugin's library as one more step of its ``build``."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, ClassVar

import setuptools
from custom_pypto_contract import manifest
from custom_pypto_contract.manifest import GROUP
from setuptools.build_meta import _BuildMetaBackend
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build import build
from setuptools.command.build_py import build_py
from setuptools.discovery import FlatLayoutPackageFinder

from . import ascendc, import_check, manylinux_tools, ops_module, plugin_library, source_files
from .errors import BuildError
from .settings import Settings, read_settings


class PluginBackend(_BuildMetaBackend):
    """The PEP 517 hooks of setuptools, run on a plugin."""

    def run_setup(self, setup_script: str = "setup.py") -> None:
        """Do what setuptools does where there is no setup.py, with `PluginDistribution`."""
        if Path(setup_script).exists():
            raise SystemExit(
                "error: setup.py would be ignored: custom_pypto_build builds a plugin from its"
                " pyproject.toml alone; move what it says there and delete it"
            )
        try:
            setuptools.setup(distclass=PluginDistribution)
        except BuildError as error:
            # A SystemExit, so that build front ends show the text and no traceback.
            raise SystemExit(f"error: {error}") from None


class PluginDistribution(setuptools.Distribution):
    """A distribution with one plugin; `plugin` holds the settings in its pyproject.toml."""

    plugin: Settings
    install_requires: list[str]

    def __init__(self, attrs: dict[str, Any] | None = None) -> None:
        self.plugin = read_settings(Path.cwd())
        super().__init__(attrs)
        self.cmdclass.update(
            build=BuildAll,
            build_plugin_library=BuildPluginLibrary,
            build_py=BuildPackages,
            bdist_wheel=PlatformWheel,
        )

    def parse_config_files(self, *arguments: Any, **options: Any) -> None:
        """Read the configuration; a project without any Python gets the package it names."""
        super().parse_config_files(*arguments, **options)
        root, package = self.plugin.root, self.plugin.package
        # setuptools looks at these packages, and not at tests, docs and the like.
        found = [root / name for name in FlatLayoutPackageFinder.find(str(root)) if "." not in name]
        found += [*root.glob("src/*")]
        if self.packages or any((folder / "__init__.py").is_file() for folder in found):
            return
        folder = Path("build", "custom-pypto", "package", package)
        (root / folder).mkdir(parents=True, exist_ok=True)
        text = f'"""The plugin {self.plugin.name!r} of custom_pypto, which is all C++."""\n\n'
        text += ops_module.STAR_IMPORT
        (root / folder / "__init__.py").write_text(text, encoding="utf-8")
        self.packages = [package]
        self.package_dir = {package: folder.as_posix()}

    def has_ext_modules(self) -> bool:
        """Whether the wheel is for one platform, because it holds a library."""
        return bool(self.plugin.sources)


class PlatformWheel(bdist_wheel):
    """A wheel for every Python 3: the library holds no symbol of Python."""

    def get_tag(self) -> tuple[str, str, str]:
        """The wheel's tag."""
        _, _, platform = super().get_tag()
        target = manylinux_tools.find_target()
        if target is not None and self.distribution.has_ext_modules():
            platform = target.tag
        return "py3", "none", platform


class BuildAll(build):
    """``build`` with the plugin's library as its last step."""

    sub_commands: ClassVar = [*build.sub_commands, ("build_plugin_library", None)]

    def run(self) -> None:
        """Build into an empty folder: a file that was renamed must not stay in the wheel."""
        shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()


class BuildPackages(build_py):
    """``build_py`` without what an editable install wrote into the source tree."""

    def find_package_modules(self, package: str, package_dir: str) -> list[tuple[str, str, str]]:
        """Return the modules as (package, module, file)."""
        modules = super().find_package_modules(package, package_dir)  # type: ignore[no-untyped-call]
        return [each for each in modules if not ops_module.is_written(Path(each[2]))]


class BuildPluginLibrary(setuptools.Command):
    """Compiles the library, and puts it, functions, manifest and opp folder into the package.

    In an editable install they go into the package's folder in the source tree. Follows
    `setuptools.command.build.SubCommand`.
    """

    description = "compile the library of a custom_pypto plugin"
    user_options: ClassVar[list[tuple[str, str, str]]] = []
    distribution: PluginDistribution

    def initialize_options(self) -> None:
        """Set the defaults of the options."""
        self.editable_mode = False
        self.plugin = self.distribution.plugin
        self.build_lib: Any = None
        self.build_base: Any = None

    def finalize_options(self) -> None:
        """Use the folders of the command ``build``."""
        folders = (("build_lib", "build_lib"), ("build_base", "build_base"))
        self.set_undefined_options("build", *folders)

    def run(self) -> None:
        """Build, and copy the results into the package."""
        package = self._source_package()
        if not self.editable_mode:
            package = self._built_package()
        ops = plugin_library.read_ops(self.plugin)
        library = ascendc_library = None
        if self.plugin.sources:
            build_folder = Path(self.build_base)
            library = plugin_library.build(self.plugin, ops, build_folder)
            ascendc_library = ascendc.build(self.plugin, plugin_library.object_folder(build_folder))
        distribution = self._distribution()
        kernels = import_check.check(self.plugin, ops, library, distribution)
        plugin_library.install(
            library,
            self.plugin,
            ops,
            package,
            distribution=distribution.name,
            version=distribution.version,
            ascendc=ascendc.install(ascendc_library, self.plugin.name, package),
            kernels=kernels,
        )
        if self.plugin.opp is not None:
            source, target = self.plugin.root / self.plugin.opp, package / manifest.OPP_FOLDER
            if self.editable_mode:
                source_files.link(source, target)
            else:
                shutil.rmtree(target, ignore_errors=True)
                shutil.copytree(source, target)

    def get_source_files(self) -> list[str]:
        """Return the files of a source distribution that are not Python, as relative paths."""
        return source_files.of_distribution(self.plugin)

    def get_outputs(self) -> list[str]:
        """The files that belong to the package in the end, below the build folder."""
        return list(self._files())

    def get_output_mapping(self) -> dict[str, str]:
        """In an editable install, where each of `get_outputs` really is."""
        return self._files() if self.editable_mode else {}

    def _files(self) -> dict[str, str]:
        built, source = self._built_package(), self._source_package()
        names = [manifest.FILE_NAME, ops_module.FILE_NAME, "py.typed"]
        if self.plugin.sources:
            names.append(plugin_library.library_path(self.plugin))
        package = source if self.editable_mode else built
        kernels = ascendc.libraries(self.plugin.name, package)
        names += [path.relative_to(package).as_posix() for path in kernels]
        files = {str(built / name): str(source / name) for name in names}
        for file in source_files.below(self.plugin.root, self.plugin.opp):
            assert self.plugin.opp is not None
            files[str(built / manifest.OPP_FOLDER / Path(file).relative_to(self.plugin.opp))] = file
        return files

    def _distribution(self) -> import_check.Distribution:
        """The distribution, with its modules where they are before the plugin is installed."""
        whole = self.distribution
        if self.editable_mode:
            packages = {name.split(".")[0] for name in whole.packages or ()}
            build_py = self.get_finalized_command("build_py")
            modules = {name: Path(build_py.get_package_dir(name)) for name in packages}
            base = Path(build_py.get_package_dir(""))
            modules |= {f"{name}.py": base / f"{name}.py" for name in whole.py_modules or ()}
        else:
            modules = {path.name: path for path in Path(self.build_lib).iterdir()}
        return import_check.Distribution(
            name=str(whole.get_name()),
            version=str(whole.get_version()),
            requires=list(whole.install_requires),
            modules=modules,
        )

    def _built_package(self) -> Path:
        return Path(self.build_lib, self.plugin.package)

    def _source_package(self) -> Path:
        package = self.plugin.package
        packages = self.distribution.packages or []
        if package not in packages:
            raise BuildError(
                f"pyproject.toml: the entry point of group '{GROUP}' names the package"
                f" {package!r}, but the distribution's packages are {sorted(packages)}; write"
                f" src/{package}/__init__.py or correct the entry point"
            )
        return Path(self.get_finalized_command("build_py").get_package_dir(package))
