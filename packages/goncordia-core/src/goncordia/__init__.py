"""A job queue engine that works with the database you already have."""
