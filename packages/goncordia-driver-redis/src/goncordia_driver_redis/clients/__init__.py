"""What may be passed in, and the connections that are made from it."""
