"""What runs the cases: subjects in turn, over several rounds, each sample in its own process."""
