"""What is read from outside of the code that is measured."""
