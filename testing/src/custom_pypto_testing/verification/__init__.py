"""``custom-pypto verify``: the suite's checks on a device, in processes of their own."""
