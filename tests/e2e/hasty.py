"""captfctl that waits for a silent server a fifth as long: `python -m tests.e2e.hasty ARGUMENT…`

What it waits for, and in which order, stays the same; tests/manager/test_health.py and
tests/live/test_watch_times.py hold the real times.
"""

import os
import sys
from functools import partial

from captfctl import cli
from captfctl.cluster import live
from captfctl.controller import informer
from captfctl.manager import health
from tests.e2e.site import ROOT

COMMAND = ("/usr/bin/env", f"PYTHONPATH={ROOT}", sys.executable, "-m", __name__)
"""The beginning of a command line of it."""

_SHARE = 5


def main() -> None:
    limits = live.Limits()
    shorter = {name: getattr(limits, name) / _SHARE for name in ("connect", "read", "silence")}
    live.Limits = partial(live.Limits, **shorter)
    informer.WATCH_SECONDS = tuple(bound // _SHARE for bound in informer.WATCH_SECONDS)
    health.SILENT_AFTER /= _SHARE
    health.STALLED_AFTER /= _SHARE
    os.environ.pop("PYTHONPATH", None)
    cli.main()


if __name__ == "__main__":
    main()
