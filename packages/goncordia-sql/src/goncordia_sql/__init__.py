"""The SQL that the SQL drivers share (private: depend on a driver package instead).

An operation of the contract is a generator: it yields statements, is sent their rows, and returns
its result; it does no I/O. :func:`run_sync` and :func:`run_async` drive it over an adapter, which
is how one library runs a statement. What a database understands is its :class:`Dialect`.
"""

from goncordia_sql.dialect import Dialect
from goncordia_sql.migrations import Migration, Migrations
from goncordia_sql.ops import Operations
from goncordia_sql.run import (
    AsyncAdapter,
    AsyncConnection,
    SyncAdapter,
    SyncConnection,
    run_async,
    run_sync,
    transact_async,
    transact_sync,
)
from goncordia_sql.statement import Batch, Op, ParamStyle, Rows, Sql, Statement

__all__ = [
    "AsyncAdapter",
    "AsyncConnection",
    "Batch",
    "Dialect",
    "Migration",
    "Migrations",
    "Op",
    "Operations",
    "ParamStyle",
    "Rows",
    "Sql",
    "Statement",
    "SyncAdapter",
    "SyncConnection",
    "run_async",
    "run_sync",
    "transact_async",
    "transact_sync",
]
