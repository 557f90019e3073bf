"""The kit's pytest plugin."""
