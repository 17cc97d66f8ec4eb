"""Calls itself add_custom, which custom-pypto-add-custom is called already."""
