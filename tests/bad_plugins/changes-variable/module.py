"""Sets a variable by which the user controls all plugins."""

import os

os.environ["CUSTOM_PYPTO_CPU_ISA"] = "nonsense"
