"""What ``custom-pypto verify`` does: which checks there are, how they run, what is written.

Everything that imports torch is in ``in_child.py``, and runs in other processes.
"""
