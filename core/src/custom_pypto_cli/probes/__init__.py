"""What ``custom-pypto doctor`` looks at: one module for each section of its report."""
