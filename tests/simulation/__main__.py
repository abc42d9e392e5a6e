"""Replay one seed and tell its story: `python -m tests.simulation --seed 17`."""

import argparse
import sys

from tests.simulation.apps import AppSimulation
from tests.simulation.course import Broken, Course
from tests.simulation.simulator import Simulation


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=1, help="how many, from --seed on")
    parser.add_argument("--steps", type=int, default=150, help="with faults, before the quiet end")
    parser.add_argument("--apps", action="store_true", help="the runs engine alone, with apps")
    parser.add_argument("--quiet", action="store_true", help="tell only what went wrong")
    options = parser.parse_args()
    wrong = 0
    for seed in range(options.seed, options.seed + options.seeds):
        kind = AppSimulation if options.apps else Simulation
        simulation: Course = kind(seed, steps=options.steps)
        verdict = "ended well"
        try:
            simulation.run()
        except Broken as broken:
            wrong += 1
            verdict = f"BROKEN: {broken}"
        if not options.quiet:
            print("\n".join(simulation.story))
        print(f"seed {seed}: {verdict}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
