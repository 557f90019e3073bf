"""The conformance kit: the tests that every driver must pass."""
