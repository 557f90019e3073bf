"""Run seeds by hand.

python packages/goncordia-core/tests/simulation -n 500          500 seeds, from 0
python packages/goncordia-core/tests/simulation -s 17 -n 1      one seed
python packages/goncordia-core/tests/simulation -v 17           one seed, with its trace
python packages/goncordia-core/tests/simulation --bug NAME      with a bug planted
python packages/goncordia-core/tests/simulation --bugs          all bugs: how many seeds catch each
"""

from __future__ import annotations

import argparse
import os
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

from .bugs import BUGS, planted
from .options import Options, Verdict
from .seed import simulate

__all__ = ["catch", "main", "run_seed"]


_CHUNK = 16


def run_seed(seed: int, bug: str | None = None, keep_trace: bool = False) -> Verdict:
    """One seed, perhaps with a bug planted."""
    if bug is None:
        return simulate(seed, Options(keep_trace=keep_trace))
    with planted(bug) as options:
        return simulate(seed, options(keep_trace=keep_trace))


def catch(seed: int, bug: str) -> Verdict | None:
    """What the seed says of the bug; None: nothing, or it says the same without the bug."""
    verdict = run_seed(seed, bug)
    if verdict.broken and not simulate(seed, Options(**BUGS[bug].options)).broken:
        return verdict
    return None


def main(argv: list[str] | None = None) -> int:
    """The command; 1 when a seed without a planted bug failed."""
    parser = argparse.ArgumentParser(prog="simulation", description="Run seeds of the simulation.")
    parser.add_argument("-n", type=int, default=200, help="how many seeds")
    parser.add_argument("-s", type=int, default=0, help="the first seed")
    parser.add_argument("-v", type=int, metavar="SEED", help="run one seed and print its trace")
    parser.add_argument("-j", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("-c", action="store_true", help="print what happened how often")
    parser.add_argument("--bug", choices=sorted(BUGS), help="plant this bug")
    parser.add_argument("--bugs", action="store_true", help="plant every bug, one after the other")
    given = parser.parse_args(argv)
    if given.v is not None:
        verdict = run_seed(given.v, given.bug, keep_trace=True)
        print("\n".join(verdict.trace))
        print(verdict.broken, verdict.first, verdict.counts, verdict.digest)
        return int(bool(verdict.broken))
    seeds = range(given.s, given.s + given.n)
    with ProcessPoolExecutor(given.j) as pool:
        if given.bugs:
            names = [given.bug] if given.bug else [name for name in BUGS if BUGS[name].within]
            return int(sum(not _hunt(pool, seeds, bug) for bug in names) > 0)
        failed = _report(pool, seeds, given.bug, counts=given.c)
    return int(failed > 0 and given.bug is None)


def _hunt(pool: ProcessPoolExecutor, seeds: range, bug: str) -> bool:
    """How soon a bug is caught: three times, or after all seeds."""
    caught: list[Verdict] = []
    tried = 0
    for start in range(seeds.start, seeds.stop, _CHUNK):
        part = range(start, min(start + _CHUNK, seeds.stop))
        tried += len(part)
        found = pool.map(catch, part, [bug] * len(part))
        caught += [verdict for verdict in found if verdict is not None]
        if len(caught) >= 3:
            break
    first = f"first {caught[0].seed}: {', '.join(caught[0].broken)}" if caught else ""
    print(f"{bug}: caught by {len(caught)} of {tried} seeds; {first}"[:200], flush=True)
    return bool(caught)


def _report(pool: ProcessPoolExecutor, seeds: range, bug: str | None, *, counts: bool) -> int:
    began = time.perf_counter()
    broken: Counter[str] = Counter()
    totals: Counter[str] = Counter()
    first: dict[str, int] = {}
    failed = 0
    for verdict in pool.map(run_seed, seeds, [bug] * len(seeds), chunksize=8):
        failed += bool(verdict.broken)
        totals.update(verdict.counts)
        for what in verdict.broken:
            broken[what] += 1
            first.setdefault(what, verdict.seed)
    took = time.perf_counter() - began
    print(
        f"{bug or 'no bug'}: {len(seeds)} seeds, {failed} failed, "
        f"{len(seeds) / took * 60:.0f} seeds/min",
        flush=True,
    )
    for what, times in broken.most_common(12):
        print(f"  {times:5d}  {what}   (first: -v {first[what]})", flush=True)
    if counts:
        for what, total in sorted(totals.items()):
            print(f"  {total / len(seeds):9.2f}  {what}")
    return failed
