"""Run benchmarks and print what they find as one table.

python -m benchmarks [--list] [--objects N]... [--machines N] [NAME...]
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module

from rich.console import Console

from benchmarks.figures import Figure, Missing, Result, show

_WIDE = 180
_OBJECTS = {"manager": 1000, "fleet": 3000}
_MACHINES = 500

DESCRIPTIONS = {
    "decide": "decisions of one core, from a snapshot to what to do next",
    "start": "how long commands take to start",
    "runner": "one apply by the runner, its executable, redaction and fingerprint",
    "store": "the store in memory, on SQLite and over HTTP",
    "api": "lists and watches of the embedded API server",
    "terminal": "what approve, restore and delete take where there are 10,000 objects",
    "manager": "the manager on a real API server with many objects that have nothing to do",
    "fleet": "machines created at once; then the same with clusters, machines and pools",
}


def main(arguments: Sequence[str]) -> int:
    options = _parse(arguments)
    if options.list:
        for name, text in DESCRIPTIONS.items():
            print(f"{name:<8} {text}")
        return 0
    results = []
    for name in options.names or DESCRIPTIONS:
        print(f"{name}: {DESCRIPTIONS[name]}", file=sys.stderr, flush=True)
        results.append(_measured(name, _benchmark(name, options)))
    console = Console()
    # Piped into a file, a table is not cut off at the width of no terminal.
    show(results, console if console.is_terminal else Console(width=_WIDE))
    return 0


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="all when none is given")
    parser.add_argument("--list", action="store_true", help="only tell which there are")
    parser.add_argument(
        "--objects",
        type=int,
        action="append",
        metavar="N",
        help="objects of the benchmarks of the manager; may be repeated; default "
        + ", ".join(f"{count} for {name}" for name, count in _OBJECTS.items()),
    )
    parser.add_argument(
        "--machines",
        type=int,
        default=_MACHINES,
        metavar="N",
        help=f"machines that the fleet's benchmark creates at once; default {_MACHINES}",
    )
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in DESCRIPTIONS]
    if unknown:
        parser.error(f"no benchmark is named {unknown[0]}; there are {', '.join(DESCRIPTIONS)}")
    return options


def _benchmark(name: str, options: argparse.Namespace) -> Callable[[], Iterator[Figure]]:
    """Imported only now: each starts with what it measures."""
    if name == "manager":
        from benchmarks.manager import bench

        return lambda: bench.run(options.objects or [_OBJECTS[name]])
    if name == "fleet":
        from benchmarks.manager import fleet

        return lambda: fleet.run(options.objects or [_OBJECTS[name]], options.machines)
    found: Callable[[], Iterator[Figure]] = import_module(f"benchmarks.bench_{name}").run
    return found


def _measured(name: str, run: Callable[[], Iterator[Figure]]) -> Result:
    figures: list[Figure] = []
    try:
        figures.extend(run())
    except Missing as reason:
        return Result(name, figures, str(reason))
    return Result(name, figures)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
