"""The cases on Redis: ours, each peer and the floor on a server that is emptied before each."""
