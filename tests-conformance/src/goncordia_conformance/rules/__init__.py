"""The tests, a module for each rule of the contract."""
