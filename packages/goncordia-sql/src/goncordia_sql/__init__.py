"""The SQL that the SQL drivers share (private: depend on a driver package instead).

An operation of the contract is a generator: it yields statements, is sent their rows, and returns
its result; it does no I/O. :func:`run_sync` and :func:`run_async` drive it over an adapter, which
is how one library runs a statement. What a database understands is its :class:`Dialect`.
"""

from goncordia_sql.dialect import Dialect
from goncordia_sql.migrations import Migration, Migrations
from goncordia_sql.ops import Operations
from goncordia_sql.run import AsyncAdapter, SyncAdapter, run_async, run_sync
from goncordia_sql.statement import Batch, Op, ParamStyle, Rows, Sql, Statement

__all__ = [
    "AsyncAdapter",
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
    "run_async",
    "run_sync",
]
