"""The cases on PostgreSQL: ours, each peer and the floor in databases of their own."""
