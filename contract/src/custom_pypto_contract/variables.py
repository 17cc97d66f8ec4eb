"""The environment variables of a build, which ``custom-pypto doctor`` knows without the builder."""

BUILD_CHECK = "CUSTOM_PYPTO_BUILD_CHECK"
"""``0``: the build does not import what it has built."""
TORCH_DIR = "CUSTOM_PYPTO_TORCH_DIR"
"""The folder of the package ``torch`` whose headers plugins are compiled with."""
PLATFORM = "CUSTOM_PYPTO_PLATFORM"
"""The tag of the systems that the wheel is for, such as ``manylinux_2_28_aarch64``."""
