"""The seeded simulation: real worker pools on virtual time, a bad network, and a ledger."""
