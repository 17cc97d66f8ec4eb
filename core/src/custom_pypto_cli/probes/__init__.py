"""The probes of ``custom-pypto doctor``: one module for each section of its report."""
