"""What the driver asks of the server: each operation once, without I/O."""
