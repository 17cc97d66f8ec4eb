"""The probes of ``custom-pypto check``: one module for each section of its report."""
