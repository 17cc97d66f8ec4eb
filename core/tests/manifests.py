"""Manifests and contracts with nothing wrong."""

from typing import Any

from custom_pypto.core.contracts.lazy import LazyContract
from custom_pypto_contract import manifest, ops_file
from custom_pypto_contract.contract import OpContract
from custom_pypto_contract.manifest import Library, Manifest, ManifestOp


def make_manifest(name: str = "first", **changes: Any) -> Manifest:
    """The manifest of the plugin `name` of ``acme-<name>`` 1.0, with some fields changed."""
    fields = {
        "distribution": f"acme-{name.replace('_', '-')}",
        "version": "1.0",
        "core_abi": (1, 0),
        "torch_target": "2.10",
        "platform": "linux_x86_64",
        "ops": (make_op(name),),
        "requires_ops": (),
        "library": Library("lib/libacme.so", "ab" * 32),
    }
    return Manifest(name=name, **(fields | changes))


def make_op(name: str) -> ManifestOp:
    """An op that takes and gives a tensor."""
    return manifest.make_op({"schema": f"{name}(Tensor x) -> Tensor"})


def contract_of(text: str) -> OpContract:
    """The contract of the one op of an ops.toml."""
    [contract] = ops_file.read_document(ops_file.tomllib.loads(text)).ops
    return contract


def lazy_contract(contract: OpContract) -> LazyContract:
    """The contract as core has it from a manifest."""
    return LazyContract(manifest.make_op(contract.data))
