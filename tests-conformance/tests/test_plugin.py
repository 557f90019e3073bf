"""The plugin and the base class, seen from a project that uses them."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]

QUIET = ("-p", "no:randomly", "-p", "no:cacheprovider")

DRIVER = """
    import pytest
    from goncordia.memory import MemoryDriver
    from goncordia_conformance.rules.errors import ErrorTests
    from goncordia_conformance.rules.flat import FlatFetchTests
    from goncordia_conformance.rules.claim import ClaimTests
    from goncordia_conformance.selftest import MemoryStores

    class TestMine(ErrorTests, FlatFetchTests, ClaimTests):
        not_applicable = {"test_a_busy_backend": "there is nobody else"}

        @pytest.fixture
        def make_driver(self):
            return MemoryStores()
"""


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makepyprojecttoml("[tool.pytest.ini_options]\nasyncio_mode = 'strict'\n")
    return pytester


def test_what_is_not_proved_is_listed(project: pytest.Pytester) -> None:
    project.makepyfile(DRIVER)
    result = project.runpytest_subprocess(*QUIET, "--goncordia-rules")
    result.assert_outcomes(passed=10, skipped=39)
    result.stdout.fnmatch_lines(
        [
            "*goncordia: not proved*",
            "TestMine: a lost backend is DriverUnavailableError: no fixture unreachable",
            "TestMine: flat fetch: no fixture cost_of (7 tests)",
            "*goncordia: switched off, with the reason*",
            "TestMine: test_a_busy_backend: there is nobody else",
            "*goncordia: tests per rule*",
            "rule *passed *failed *not proved *not applicable *not claimed*",
            "2 * 10 *one claim",
            "8 * 7 *fetch stays flat",
            "11 * 31 * 1 *errors",
        ]
    )


def test_it_works_with_several_processes(project: pytest.Pytester) -> None:
    project.makepyfile(DRIVER)
    result = project.runpytest_subprocess(*QUIET, "-n2", "--goncordia-rules")
    result.assert_outcomes(passed=10, skipped=39)
    result.stdout.fnmatch_lines(
        ["TestMine: flat fetch: no fixture cost_of (7 tests)", "2 * 10 *one claim"]
    )


def test_a_test_that_is_not_there_cannot_be_switched_off(project: pytest.Pytester) -> None:
    project.makepyfile(DRIVER.replace("test_a_busy_backend", "test_a_lazy_backend"))
    result = project.runpytest_subprocess(*QUIET)
    result.stdout.fnmatch_lines(["*there is no test 'test_a_lazy_backend'*"])
    assert result.ret != 0


def test_nothing_is_switched_off_without_a_reason(project: pytest.Pytester) -> None:
    project.makepyfile(DRIVER.replace("there is nobody else", " "))
    result = project.runpytest_subprocess(*QUIET)
    result.stdout.fnmatch_lines(["*'test_a_busy_backend' needs a reason*"])


def test_asserts_say_what_was_compared(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        import pytest
        from goncordia.driver import FetchResult
        from goncordia_conformance.rules.claim import ClaimTests
        from goncordia_conformance.selftest import BrokenFetch, MemoryStores

        class GivesNothing(BrokenFetch):
            def fetch_from(self, store, request, now):
                return FetchResult([])

        class TestMine(ClaimTests):
            @pytest.fixture
            def make_driver(self):
                return MemoryStores(GivesNothing)
        """
    )
    result = project.runpytest_subprocess(*QUIET, "-k", "two_sessions_in_turn")
    result.stdout.fnmatch_lines(["*assert [[]] == [[]UUID(*"])
    result.assert_outcomes(failed=2, deselected=8)


MISSING = """
    import pytest
    from goncordia_conformance.backends import Backend, find_backend

    @pytest.fixture(scope="session")
    def dsn(request):
        with find_backend(Backend("pg"), request.config, {}) as dsn:
            yield dsn

    def test_one(dsn): ...
    def test_two(dsn): ...
    def test_three(): ...
"""


def test_missing_backends_are_named(project: pytest.Pytester) -> None:
    project.makepyfile(MISSING)
    result = project.runpytest_subprocess(*QUIET)
    result.assert_outcomes(passed=1, skipped=2)
    line = "pg: GONCORDIA_TEST_PG_DSN is not set (2 tests)"
    result.stdout.fnmatch_lines(["*goncordia: missing backends*", line])


@pytest.mark.parametrize("option", ["--require-backends", "--require-backends=mysql,pg"])
def test_required_backends_must_be_there(project: pytest.Pytester, option: str) -> None:
    project.makepyfile(MISSING)
    result = project.runpytest_subprocess(*QUIET, option)
    result.assert_outcomes(passed=1, errors=2)
    line = "pg: GONCORDIA_TEST_PG_DSN is not set (2 tests)"
    result.stdout.fnmatch_lines(["*goncordia: missing backends*", line])


def test_other_backends_need_not_be_there(project: pytest.Pytester) -> None:
    project.makepyfile(MISSING)
    result = project.runpytest_subprocess(*QUIET, "--require-backends=mysql")
    result.assert_outcomes(passed=1, skipped=2)
