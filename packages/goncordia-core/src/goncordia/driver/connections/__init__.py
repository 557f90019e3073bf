"""What drivers share that keep connections: pools, one per event loop, and none through a fork.

Nothing of it is of the contract. It waits in real time, as the servers do.
"""
