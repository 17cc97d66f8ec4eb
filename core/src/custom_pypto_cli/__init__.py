"""The ``custom-pypto`` command line.

Importing this package needs the standard library only, so that ``custom-pypto doctor`` works where
torch does not.
"""


def main(arguments: list[str] | None = None) -> int:
    """Run ``custom-pypto``; see `custom_pypto_cli.console.main`."""
    from custom_pypto_cli import console

    return console.main(arguments)
