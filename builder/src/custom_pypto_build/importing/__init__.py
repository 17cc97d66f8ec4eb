"""Makes ops.toml from what describes an op elsewhere: CANN's headers and prototypes, op-plugin."""
