"""Rule 13: migrations are idempotent, safe to race, printable, and looked at before use."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Literal, TypeAlias

import pytest

from goncordia.driver import ListFilter
from goncordia.errors import MigrationRequiredError
from goncordia_conformance.base import Conformance
from goncordia_conformance.lab import Lab, MakeDriver
from goncordia_conformance.marks import not_proved

__all__ = ["MigrationTests", "SetSchema"]

SetSchema: TypeAlias = Callable[[Literal["older", "newer", "compatible"]], Awaitable[None]]
"""Makes the migrated store claim another schema: an ``older`` one than the code's; a ``newer`` one
that this code is too old for; a newer one that it may still run on (``compatible``)."""


class MigrationTests(Conformance, rule=13):
    """On an empty store, on a migrated one, and from many drivers at once."""

    @pytest.fixture
    def set_schema(self) -> SetSchema:
        """For the driver's author, where there is a schema: see :data:`SetSchema`."""
        not_proved("the schema's version is checked", "no fixture set_schema")

    async def test_the_first_use_needs_it(self, make_driver: MakeDriver) -> None:
        driver = make_driver()
        try:
            if driver.migration_script():
                with pytest.raises(MigrationRequiredError, match="migrate"):
                    await driver.ready()
                assert await driver.migrate()
            else:
                assert await driver.migrate() == [], "there is no script, and so nothing to do"
            await driver.ready()
            assert await driver.executor().count(ListFilter()) == 0
        finally:
            await driver.aclose()

    async def test_the_second_time_does_nothing(self, lab: Lab) -> None:
        job_id = await lab.add()
        assert await lab.driver.migrate() == []
        assert await (await lab.another_driver()).migrate() == []
        await lab.row(job_id)

    async def test_ten_at_once(self, make_driver: MakeDriver) -> None:
        drivers = [make_driver() for _ in range(10)]
        try:
            async with asyncio.timeout(60):
                done = await asyncio.gather(*(driver.migrate() for driver in drivers))
            if drivers[0].migration_script():
                assert any(done), "somebody must have done it"
            for driver in drivers:
                await driver.ready()
                assert await driver.migrate() == []
        finally:
            for driver in drivers:
                await driver.aclose()

    def test_it_can_be_printed(self, make_driver: MakeDriver) -> None:
        driver = make_driver()
        assert isinstance(driver.migration_script(), str)
        assert driver.migration_script() == driver.migration_script()

    async def test_an_older_schema_must_be_migrated(self, lab: Lab, set_schema: SetSchema) -> None:
        await set_schema("older")
        driver = lab.unopened_driver()
        with pytest.raises(MigrationRequiredError, match="migrate"):
            await driver.ready()

    async def test_a_schema_that_is_too_new_is_refused(
        self, lab: Lab, set_schema: SetSchema
    ) -> None:
        await set_schema("newer")
        driver = lab.unopened_driver()
        with pytest.raises(MigrationRequiredError):
            await driver.ready()
        with pytest.raises(MigrationRequiredError):
            await driver.migrate()

    async def test_workers_go_on_through_an_upgrade(self, lab: Lab, set_schema: SetSchema) -> None:
        session = await lab.session()
        row = await lab.running(session)
        await set_schema("compatible")
        assert (await lab.finish(row, "complete")).status == "DONE"
        driver = lab.unopened_driver()
        await driver.ready()
        assert await driver.executor().count(ListFilter()) == 1
