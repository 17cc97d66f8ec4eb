"""The conformance suite finds each of these faults, in kernels as other people write them.

A row is a kind of fault, a column a plugin of third_party. Every wrong kernel is right but for one
place, compiles, and reads and writes allocated memory only.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from scratch import Scratch
from wrong_kernels import Fault, FaultyPlugin

FAULTS = (
    Fault(
        "norm_rope",
        "norm_rope",
        "offset",
        "tables.sin.data() + head / s.N * half",
        "tables.sin.data() + head / s.N / 2 * half",
    ),
    Fault(
        "norm_rope",
        "norm_rope",
        "stride",
        "head % x_.size(dim) * x_.stride(dim)",
        "head % x_.size(dim) * (dim == x_.dim() - 2 ? x_.size(dim + 1) : x_.stride(dim))",
    ),
    Fault(
        "norm_rope",
        "norm_rope",
        "tail",
        "for (int64_t i = 0; i < half; ++i) {\n        const Wide<T> first",
        "for (int64_t i = 0; i < (half > 16 ? half / 16 * 16 : half); ++i) {\n"
        "        const Wide<T> first",
    ),
    Fault(
        "norm_rope",
        "norm_rope",
        "threads",
        "tables.cos.data() + head / s.N * half",
        "tables.cos.data() + (begin + (head - begin) / s.N * s.N) / s.N * half",
    ),
    Fault(
        "norm_rope",
        "norm_rope",
        "dtype",
        "using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;",
        "using Wide = std::conditional_t<std::is_same_v<T, double>, float, float>;",
    ),
    Fault(
        "norm_rope",
        "norm_rope",
        "alias",
        "T* result = out + head * s.D;",
        "T* result = out + head * s.D;\n"
        "      if (s.D > 0) const_cast<T*>(row)[s.D - 1] = static_cast<T>(0);",
    ),
    Fault(
        "norm_rope",
        "norm_rope_backward",
        "uninitialised output",
        "grad_weight[i] = static_cast<T>(sum);",
        "if (heads > 1) grad_weight[i] = static_cast<T>(sum);",
    ),
    Fault(
        "norm_rope",
        "norm_rope",
        "wrong refusal",
        "const auto tables = tables_of<Wide<T>>(a);\n  const Heads<T> x(a.x);\n  T* out",
        'custom_pypto::check(a.x.is_contiguous(), ops::norm_rope::name, "x",'
        ' "must be contiguous");\n'
        "  const auto tables = tables_of<Wide<T>>(a);\n  const Heads<T> x(a.x);\n  T* out",
    ),
    Fault(
        "paged_write",
        "paged_write_int8",
        "offset",
        "head * cache.stride(2);",
        "(cache.size(2) - 1 - head) * cache.stride(2);",
    ),
    Fault(
        "paged_write",
        "paged_write",
        "stride",
        "for (int64_t head = 0; head < s.N; ++head) {\n      const int64_t offset",
        "for (int64_t head = 0; head < 1; ++head) {\n      const int64_t offset",
    ),
    Fault(
        "paged_write",
        "paged_write",
        "tail",
        "s.D * bytes);",
        "(s.D > 8 ? s.D / 8 * 8 : s.D) * bytes);",
    ),
    Fault(
        "paged_write",
        "paged_write",
        "threads",
        "for (int64_t token = begin; token < end; ++token) {",
        "for (int64_t token = begin; token < end - (begin > 0 ? 1 : 0); ++token) {",
    ),
    Fault(
        "paged_write",
        "paged_write_int8",
        "dtype",
        "static_cast<int8_t>(std::nearbyint(static_cast<float>(row[i]) / *scale))",
        "static_cast<int8_t>(static_cast<float>(row[i]) / *scale)",
    ),
    Fault(
        "paged_write",
        "paged_write_int8",
        "alias",
        "Tensor(b!) scales",
        "Tensor scales",
        file="ops.toml",
    ),
    Fault(
        "paged_write",
        "paged_write_int8",
        "uninitialised output",
        "*scale = largest / 127;",
        "if (size > 1) *scale = largest / 127;",
    ),
    Fault(
        "paged_write",
        "paged_write",
        "wrong refusal",
        "if (places[token] >= 0) write(token, places[token]);",
        'custom_pypto::check(places[token] >= 0, op, "slots", "must be at least 0");\n'
        "      write(token, places[token]);",
    ),
    Fault(
        "rms_norm",
        "rms_norm",
        "offset",
        "y[row * size + i] = static_cast<T>(static_cast<float>(from[i]) * scale * gamma[i]);",
        "y[row * size + i] = static_cast<T>(static_cast<float>(from[i]) * scale * gamma[size - 1 - i]);",
    ),
    Fault(
        "rms_norm",
        "rms_norm",
        "stride",
        "const auto source = custom_pypto::to_contiguous(a.x);",
        "const auto& source = a.x;",
    ),
    Fault(
        "rms_norm",
        "rms_norm",
        "tail",
        "for (int64_t i = 0; i < size; ++i) {\n        sum +=",
        "for (int64_t i = 0; i < (size > 8 ? size / 8 * 8 : size); ++i) {\n        sum +=",
    ),
    Fault(
        "rms_norm",
        "rms_norm",
        "threads",
        "rstd[row] = scale;",
        "rstd[row] = row + 1 == end && end < rows ? 0 : scale;",
    ),
    Fault(
        "rms_norm",
        "rms_norm",
        "dtype",
        "rstd[row] = scale;",
        "rstd[row] = static_cast<float>(static_cast<T>(scale));",
    ),
    Fault(
        "rms_norm",
        "rms_norm",
        "alias",
        "rstd[row] = scale;",
        "rstd[row] = scale;\n      const_cast<T*>(from)[0] = from[size - 1];",
    ),
    Fault(
        "rms_norm",
        "rms_norm",
        "uninitialised output",
        "rstd[row] = scale;",
        "if (sum > 0) rstd[row] = scale;",
    ),
    Fault(
        "rms_norm",
        "rms_norm",
        "wrong refusal",
        "visit_dtype<float, custom_pypto::Half, custom_pypto::BFloat16>",
        "visit_dtype<float, custom_pypto::BFloat16>",
    ),
)
PLUGINS = {
    plugin: FaultyPlugin(plugin, [fault for fault in FAULTS if fault.plugin == plugin])
    for plugin in dict.fromkeys(fault.plugin for fault in FAULTS)
}


@pytest.fixture(scope="module")
def caught(
    tmp_path_factory: pytest.TempPathFactory, with_plugin: Callable[..., Scratch]
) -> Callable[[str], dict[str, str]]:
    """For a plugin: the faulty ops that the suite catches, with the first test that does."""
    results: dict[str, dict[str, str]] = {}

    def run(plugin: str) -> dict[str, str]:
        if plugin not in results:
            folder = PLUGINS[plugin].write(tmp_path_factory.mktemp("faults") / plugin)
            environment = with_plugin(folder)
            options = ("-q", "-p", "no:cacheprovider", "-k", "not inductor")
            done = environment.run("-m", "pytest", *options, folder, cwd=folder, check=False)
            results[plugin] = dict(re.findall(r"^caught (\w+) (.*)$", done.stdout, re.MULTILINE))
        return results[plugin]

    return run


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.id)
def test_suite_catches(fault: Fault, caught: Callable[[str], dict[str, str]]) -> None:
    assert PLUGINS[fault.plugin].name(fault) in caught(fault.plugin)
