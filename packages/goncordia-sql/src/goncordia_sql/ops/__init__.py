"""The operations of the contract, topic by topic."""

from goncordia_sql.ops.operations import Operations

__all__ = ["Operations"]
