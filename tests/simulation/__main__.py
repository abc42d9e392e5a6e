"""Replay one seed and tell its story: `python -m tests.simulation --seed 17`.

Many seeds, on all cores: `python -m tests.simulation --seeds 10000 --quiet --trusting`.
"""

import argparse
import logging
import os
import sys
import traceback
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

from tests.simulation.apps import AppSimulation
from tests.simulation.course import Broken, Course
from tests.simulation.simulator import Simulation
from tests.simulation.trusting import believe


@dataclass(frozen=True)
class Ending:
    """What became of the course of one seed; `wrong` is empty where it ended well."""

    seed: int
    story: list[str]
    wrong: str


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=1, help="how many, from --seed on")
    parser.add_argument("--steps", type=int, default=150, help="with faults, before the quiet end")
    parser.add_argument("--apps", action="store_true", help="the runs engine alone, with apps")
    parser.add_argument("--quiet", action="store_true", help="tell only what went wrong")
    parser.add_argument("--trusting", action="store_true", help="the store checks no write: faster")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes")
    options = parser.parse_args()
    seeds = range(options.seed, options.seed + options.seeds)
    course = partial(ending, AppSimulation if options.apps else Simulation, options.steps)
    broken = 0
    with ProcessPoolExecutor(
        options.workers, initializer=prepare, initargs=(options.trusting,)
    ) as workers:
        for end in workers.map(course, seeds):
            broken += bool(end.wrong)
            if end.wrong or not options.quiet:
                print("\n".join(end.story))
                print(f"seed {end.seed}: {end.wrong or 'ended well'}", flush=True)
    print(f"{len(seeds)} seeds from {options.seed}: {broken} broken")
    return 1 if broken else 0


def prepare(trusting: bool) -> None:
    """A process that takes its share of the seeds."""
    # The story has what a manager says of its passes; nothing in the rest of its log names a seed.
    logging.disable()
    if trusting:
        believe()


def ending(kind: type[AppSimulation] | type[Simulation], steps: int, seed: int) -> Ending:
    """Run the course of `seed` to its end, or to where an invariant breaks or the product fails."""
    course: Course = kind(seed, steps=steps)
    wrong = ""
    try:
        course.run()
    except Broken as broken:
        wrong = f"BROKEN: {broken}"
    except Exception:
        wrong = f"FAILED: {traceback.format_exc()}"
    return Ending(seed, course.story, wrong)


if __name__ == "__main__":
    sys.exit(main())
