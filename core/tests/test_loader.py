"""Loading, in a Python of its own for each case: what loads, what does not, and what is told."""

from __future__ import annotations

from plugin_factory import Site

RECORDS = """
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import custom_pypto.core as core
give({
    "warnings": [[w.category.__name__, str(w.message)] for w in caught],
    "plugins": {p.name: [p.status, p.reason] for p in core.plugins()},
    "order": [p.name for p in core.plugins()],
    "ops": [op.name for op in core.ops()],
})
"""


def test_every_installed_plugin_is_loaded_and_its_ops_work(site: Site) -> None:
    site.install("first", ops=["one", "two.overload"])
    site.install("second")
    given = site.run(
        """
        import torch, custom_pypto.core as core
        give([
            [p.name for p in core.plugins() if p.status == "loaded"],
            [op.name for op in core.ops()],
            torch.ops.custom_pypto.one(torch.ones(2)).tolist(),
            torch.ops.custom_pypto.two.overload(torch.ones(2)).tolist(),
        ])
        """
    )
    assert given == [["first", "second"], ["one", "second", "two.overload"], [1, 1], [1, 1]]
