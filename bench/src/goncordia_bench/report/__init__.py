"""What becomes of the figures: JSON, a Markdown table, a plot."""
