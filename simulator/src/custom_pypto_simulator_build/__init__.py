"""Builds the simulated CANN libraries, and libraries of simulated aclnn kernels.

Needs g++ (or what CXX names) and the installed wheels of torch and torch_npu, whose headers it
compiles against. Imports neither.
"""

from __future__ import annotations

from custom_pypto_build.errors import BuildError

from .libraries import build_kernels, build_libraries

__all__ = ["BuildError", "build_kernels", "build_libraries"]
