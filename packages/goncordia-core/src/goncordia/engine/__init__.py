"""The engine: fetches, runs and finishes jobs. One file a loop; ``engine`` puts them together."""
