"""What both clients do, without I/O: each operation is written once and driven by either."""
