"""The scripts: one file for each, put together with the parts of ``lib`` that it names."""
