"""The checks of ``custom-pypto verify``: they call ops on a device, such as an NPU.

Each is a function of an op, of how many calls it makes at most, and of a function that is told
which call comes next. It returns a `Finding`, or raises what the op raised. One process runs one.
"""
