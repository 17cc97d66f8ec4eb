"""Makes warnings errors, and fails."""

import warnings

warnings.simplefilter("error")
raise LookupError
