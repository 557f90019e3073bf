"""``python -m goncordia``: the command ``goncordia``, where its script is not on the path."""

from __future__ import annotations

from goncordia.cli import main

if __name__ == "__main__":
    main()
