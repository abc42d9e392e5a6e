"""captfctl with a wrong wall clock: `python -m tests.kubernetes.skewed SECONDS ARGUMENT…`"""

import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from captfctl import cli, clock
from tests.e2e.site import CAPTFCTL, ROOT


def command(seconds: int) -> Sequence[str]:
    """The beginning of a command line of captfctl with a clock that is so many seconds ahead."""
    if not seconds:
        return (str(CAPTFCTL),)
    return ("/usr/bin/env", f"PYTHONPATH={ROOT}", sys.executable, "-m", __name__, str(seconds))


def main() -> None:
    ahead = timedelta(seconds=int(sys.argv.pop(1)))
    clock.SystemClock.now = lambda _: datetime.now(UTC) + ahead  # type: ignore[method-assign]
    os.environ.pop("PYTHONPATH", None)
    cli.main()


if __name__ == "__main__":
    main()
