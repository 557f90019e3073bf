"""The floor: the least that must be done, by the bare library."""
