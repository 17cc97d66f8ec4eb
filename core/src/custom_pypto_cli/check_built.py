"""``python -m custom_pypto_cli.check_built <plugin> <distribution>``: can core load what was built?

custom_pypto_build runs it in a folder that the plugin is installed in. It prints one JSON object:
``{"refused": why}``, ``{"skipped": why}`` when that cannot be checked here, or ``{}``.
"""

from __future__ import annotations

import json
import sys

from custom_pypto_cli import built_plugin, child

# torch's first import may take long on a machine that is busy building.
TIME_LIMIT = 300.0


def main(plugin: str, distribution: str) -> None:
    """Print what becomes of `plugin` of `distribution` when core is imported."""
    outcome = child.call(
        built_plugin.check,
        plugin,
        distribution,
        time_limit=TIME_LIMIT,
        environment={
            "CUSTOM_PYPTO_PLUGINS": plugin,
            "CUSTOM_PYPTO_DISABLE": "",
            "CUSTOM_PYPTO_STRICT": "",
            # A plugin registers its ops without torch_npu, which may lack the CANN that it needs.
            "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
        },
    )
    print(json.dumps(outcome.value if outcome.ok else {"refused": f"it {outcome.failure}"}))


if __name__ == "__main__":
    main(*sys.argv[1:])
