"""The memory driver: the reference implementation of the driver contract.

``Store`` holds the rules, in plain synchronous code; ``MemoryDriver`` puts the contract over it.
"""

from goncordia.memory.driver import MemoryDriver
from goncordia.memory.store import Store
from goncordia.memory.tx import MemoryTx

__all__ = ["MemoryDriver", "MemoryTx", "Store"]
