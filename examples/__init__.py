"""Programs that use the ops the way a serving engine would."""
