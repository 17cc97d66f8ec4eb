"""``custom-pypto list``: the plugins that are installed, and their ops."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from custom_pypto_discovery.host import HOW_TO_INSTALL_OPS

from custom_pypto_cli import plugin_list
from custom_pypto_cli.commands import add_time_limit, load_or_explain
from custom_pypto_cli.terminal import align, show, show_json

SUMMARY = "list the installed op plugins and their ops"
DESCRIPTION = "Lists every installed op plugin with its ops, and why one is not loaded."
EXIT_STATUS = "0 listed, 1 custom_pypto.core cannot be imported"

_HEADINGS = ("PLUGIN", "VERSION", "STATUS", "OPS")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare ``--json``."""
    parser.add_argument("--json", action="store_true", help="print the list as JSON")
    add_time_limit(parser)


def run(options: argparse.Namespace) -> int:
    """Print the plugins in the order in which core loaded them."""
    plugins = load_or_explain(plugin_list.load_all, time_limit=options.time_limit)["plugins"]
    if options.json:
        show_json({"plugins": plugins})
    elif plugins:
        show("\n".join(_lines(plugins)))
    else:
        show(f"No op plugin is installed; {HOW_TO_INSTALL_OPS}.")
    return 0


def _lines(plugins: list[dict[str, Any]]) -> Iterator[str]:
    rows = [
        (
            plugin["name"],
            plugin["version"] or "-",
            plugin["status"],
            ", ".join(op["name"] for op in plugin["ops"]) or "-",
        )
        for plugin in plugins
    ]
    heading, *lines = align([_HEADINGS, *rows])
    yield heading
    for plugin, line in zip(plugins, lines, strict=True):
        yield line
        for text in plugin["reason"].splitlines():
            yield f"  {text}"
        for problem, advice in plugin_list.describe_missing_kernels(plugin):
            yield f"  warning: {problem}; {advice}"
