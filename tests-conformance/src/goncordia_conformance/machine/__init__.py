"""The state machine: a driver and the model are asked the same, step by step."""

from goncordia_conformance.machine.arena import Arena
from goncordia_conformance.machine.looks import Machine
from goncordia_conformance.machine.model import Model, WrongAnswer

__all__ = ["Arena", "Machine", "Model", "WrongAnswer"]
