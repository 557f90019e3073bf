"""Migrations: the schema's versions, and who may work on which."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from goncordia.errors import MigrationRequiredError
from goncordia_sql.dialect import Dialect
from goncordia_sql.statement import Op

__all__ = ["Migration", "Migrations"]


class Migration(NamedTuple):
    """One step of the schema.

    Attributes:
        version: counted from 1, without gaps.
        name: what it does, in a few words.
        statements: its SQL, run in order in one transaction where the database can.
        oldest: the oldest version of the code, counted by the newest migration that it knows, that
            still works after this step.
    """

    version: int
    name: str
    statements: Sequence[str]
    oldest: int


class Migrations:
    """The migrations of one dialect, and the state of a database.

    Args:
        dialect: the database's.
        steps: all migrations, in order.
        ledger: creates the table of applied migrations, if it is not there.
    """

    def __init__(self, dialect: Dialect, steps: Sequence[Migration], ledger: str) -> None:
        self._dialect = dialect
        self._steps = steps
        self._ledger = dialect.sql(ledger)
        self._applied = dialect.sql(f"SELECT version, oldest FROM {dialect.migration}")
        self._record = dialect.sql(f"""
            INSERT INTO {dialect.migration} (version, name, oldest, applied_at)
            VALUES (:version, :name, :oldest, :now)
            """)

    @property
    def version(self) -> int:
        """The newest version that this code knows."""
        return self._steps[-1].version

    def script(self) -> str:
        """What :meth:`migrate` runs on an empty database."""
        statements = [self._ledger.text]
        for step in self._steps:
            statements.append(f"-- {step.version}: {step.name}\n" + ";\n".join(step.statements))
            statements.append(
                f"INSERT INTO {self._dialect.migration} (version, name, oldest, applied_at) VALUES "
                f"({step.version}, '{step.name}', {step.oldest}, {self._dialect.now_literal})"
            )
        return ";\n".join(statements) + ";\n"

    def migrate(self) -> Op[list[str]]:
        """Apply what is missing. To be run by one at a time.

        Raises:
            MigrationRequiredError: the schema is newer, and this code is too old for it.
        """
        yield self._ledger()
        applied = (yield self._applied()).rows
        self._refuse_newer(applied)
        known = {version for version, _ in applied}
        now = yield from self._dialect.now()
        done: list[str] = []
        for step in self._steps:
            if step.version in known:
                continue
            for text in step.statements:
                yield self._dialect.sql(text)()
            yield self._record(version=step.version, name=step.name, oldest=step.oldest, now=now)
            done.append(f"{step.version}: {step.name}")
        return done

    def verify(self) -> Op[None]:
        """Check that this code may work on the schema.

        Raises:
            MigrationRequiredError: it is older than the code, or too new for it.
        """
        applied = (yield self._applied()).rows
        self._refuse_newer(applied)
        stored = max((version for version, _ in applied), default=0)
        if stored < self.version:
            raise MigrationRequiredError(
                f"the schema has version {stored}, this code needs {self.version}: run migrate() "
                "or `goncordia migrate`"
            )

    def _refuse_newer(self, applied: Sequence[Sequence[int]]) -> None:
        stored = max((version for version, _ in applied), default=0)
        oldest = max((oldest for _, oldest in applied), default=0)
        if oldest > self.version:
            raise MigrationRequiredError(
                f"the schema has version {stored}, which needs code of version {oldest} or newer; "
                f"this code has version {self.version}: upgrade goncordia"
            )
