"""The help of an op in `torch.ops.custom_pypto`, or the reason why it is absent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from custom_pypto_contract.errors import ContractError, find_similar
from custom_pypto_discovery.host import HOW_TO_INSTALL_OPS
from custom_pypto_discovery.installed_plugin import Status, op_family
from custom_pypto_discovery.printable import escape_lines, shorten

from custom_pypto.core.contracts.lazy import LazyContract
from custom_pypto.core.plugin import Plugin
from custom_pypto.core.records import NAMESPACE


def describe_op(op: str, plugins: Iterable[Plugin]) -> str | None:
    """Return the contracts of `op` and who provides it; None while its plugin loads."""
    for plugin in plugins:
        if op not in plugin.installed.families:
            continue
        if plugin.status is Status.ACCEPTED:
            return None
        if plugin.status is Status.LOADED:
            contracts = plugin.contracts.items()
            texts = [_describe(each) for name, each in contracts if op_family(name) == op]
            source = f"An op of {plugin.title}; `custom-pypto info {op}` shows more."
            return escape_lines("\n\n".join([*texts, source]))
    return ""


def explain_absence(op: str, plugins: Sequence[Plugin]) -> str:
    """Return why `torch.ops.custom_pypto` has no `op`, and what to do."""
    op = shorten(op)
    absent = f"torch.ops.{NAMESPACE} has no op {op!r}"
    owners = [each for each in plugins if op in {*each.installed.families, *each.refused_ops}]
    if owners:
        states = "; and to ".join(map(_describe_state, owners))
        return f"{absent}: it belongs to {states}"
    provided = "no installed plugin provides it"
    unknown = [plugin for plugin in plugins if not plugin.ops]
    if unknown:
        # Without a valid manifest nothing says which ops are theirs.
        states = "; or to ".join(map(_describe_state, unknown))
        provided = f"it may belong to {states}; no other installed plugin provides it"
    known = sorted({name for plugin in plugins for name in plugin.installed.families})
    near = find_similar(op, known, most=3)
    similar = f"installed ops with a similar name: {', '.join(near)}; " if near else ""
    # "<name>", not the op's: a misspelt name must not become a wheel to install.
    return (
        f"{absent}: {provided}; {similar}{HOW_TO_INSTALL_OPS}; `custom-pypto list` shows what is"
        " installed"
    )


def _describe(contract: LazyContract) -> str:
    from custom_pypto_contract.description import describe

    try:
        return describe(contract.op)
    except ContractError as error:
        return str(error)


def _describe_state(plugin: Plugin) -> str:
    if plugin.status is Status.ACCEPTED:
        return f"{plugin.title}, which is not loaded yet: the import of custom_pypto.core goes on"
    return f"{plugin.title}, which {plugin.status.verb}: {escape_lines(plugin.reason)}"
