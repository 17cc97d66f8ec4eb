"""Has a kernel whose C++ type is not what its schema says."""
