"""The layers of plugins: ``<plugin>.py`` becomes ``layers.py`` of its folder."""
