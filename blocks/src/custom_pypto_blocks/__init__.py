"""C++ headers in the folder ``include``, and `ge_steps`, which converters of torchair share."""
