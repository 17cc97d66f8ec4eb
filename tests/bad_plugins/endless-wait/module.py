"""Waits for what nobody does."""

import threading

threading.Event().wait()
