"""What ``custom-pypto check`` looks at in the file of a wheel."""
