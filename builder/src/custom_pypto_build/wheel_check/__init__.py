"""The command `check`: a wheel is unpacked and inspected."""
