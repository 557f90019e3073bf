"""What a driver has for nothing: the contract's other methods, made from the required ten."""
