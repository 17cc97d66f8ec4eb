"""Has core load plugins while it is loaded."""

import custom_pypto.core

custom_pypto.core.load_new()
