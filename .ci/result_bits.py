"""Print a SHA-256 of the results of each installed op, on every call of its conformance suite.

Two builds of the plugins have the same results if they print the same. CUSTOM_PYPTO_CPU_ISA chooses
an instruction set, as everywhere.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import torch
from custom_pypto import core
from custom_pypto_testing.call import tensor_outputs
from custom_pypto_testing.drawn_samples import drawn_calls
from custom_pypto_testing.subject import Subject


def main() -> None:
    """Call every op of every plugin that is loaded."""
    for plugin in core.plugins():
        if plugin.status != "loaded":
            raise SystemExit(f"{plugin.name} is not loaded: {plugin.reason}")
        subject = Subject.of_plugin(plugin.name)
        for op in subject.ops_on("cpu"):
            found = hashlib.sha256()
            count = 0
            for case in op.cases:
                call = case.call()
                _add(found, {**tensor_outputs(case.op(*call.args, **call.kwargs)), **call.mutable})
                count += 1
            function = getattr(torch.ops.custom_pypto, op.name)
            for given in drawn_calls(subject.contracts[op.name], 50, "bits"):
                try:
                    results = tensor_outputs(function(**given))
                except RuntimeError as refusal:
                    found.update(str(refusal).encode())
                    continue
                written = {k: v for k, v in given.items() if isinstance(v, torch.Tensor)}
                _add(found, {**results, **written})
                count += 1
            print(f"{found.hexdigest()[:32]}  {count:4} calls  {op.name}", flush=True)


def _add(found: hashlib._Hash, tensors: Mapping[str, torch.Tensor]) -> None:
    for name, tensor in tensors.items():
        found.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        found.update(bytes(tensor.detach().contiguous().flatten().view(torch.uint8).numpy()))


if __name__ == "__main__":
    main()
