"""The job systems on Redis that ours is compared with, each run in an environment of its own.

They are not installed where this is checked, so the type checkers know nothing of them.
"""
