"""The peers: other libraries, used as their documentation says."""
