"""Has the library of another plugin unregister its ops."""

import ctypes

from custom_pypto.core.api import plugins

[_path] = [each.library for each in plugins() if each.name == "add_custom"]
ctypes.CDLL(str(_path)).custom_pypto_unregister_v1()
