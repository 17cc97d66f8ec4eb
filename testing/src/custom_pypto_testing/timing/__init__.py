"""Times calls beside others and the machine's peak: for ``custom-pypto bench`` and benchmarks."""
