"""``python -m custom_pypto_cli.check_built <plugin> <distribution>``: can core load what was built?

custom_pypto_build runs it in a folder that the plugin is installed in. It prints one JSON object:
``{"refused": why}``, ``{"skipped": why}`` when that cannot be checked here, or ``{}``.
"""

from __future__ import annotations

import json
import sys

from custom_pypto_cli import child

# torch's first import may take long on a machine that is busy building.
TIME_LIMIT = 300.0

_IMPORT = """
try:
    import torch
except Exception as error:
    report({{"skipped": f"torch cannot be imported: {{error}}"}})
    sys.exit()
import re
import warnings
from importlib import metadata
warnings.simplefilter("ignore")
import custom_pypto.core
from custom_pypto_cli import records
key = ({plugin!r}, {distribution!r})
[plugin] = [each for each in custom_pypto.core.plugins() if (each.name, each.distribution) == key]

def is_missing(requirement):
    name = re.match(r"[\\w.-]+", requirement)[0]
    try:
        return not metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return ";" not in requirement

missing = list(filter(is_missing, metadata.requires(plugin.distribution) or []))
undeclared = list(records.undeclared())
if plugin.status == "loaded" and undeclared:
    op = undeclared[0]
    report({{"refused": f"it registers the op {{op!r}}, which ops.toml does not describe"}})
elif plugin.status == "loaded":
    report({{}})
elif missing and "No module named" in plugin.reason:
    report({{"skipped": f"{{plugin.reason}}; not installed: {{', '.join(missing)}}"}})
else:
    report({{"refused": plugin.reason}})
"""


def main(plugin: str, distribution: str) -> None:
    """Print what becomes of `plugin` of `distribution` when core is imported."""
    outcome = child.run(
        _IMPORT.format(plugin=plugin, distribution=distribution),
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
