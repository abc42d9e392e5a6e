"""The embedded control plane without a manager: `python -m tests.e2e.bare_plane DATA IMAGES`."""

import os
import signal
import sys
import threading
from pathlib import Path

from captfctl.clock import SystemClock
from captfctl.embedded.images import ImageTable
from captfctl.embedded.plane import LocalPlane

UP = "the plane is up"


def main(data: Path, images: Path) -> None:
    ending = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ending.set())
    plane = LocalPlane(
        data=data, images=ImageTable.from_file(images), clock=SystemClock(), environ=os.environ
    )
    plane.start()
    print(UP, flush=True)
    ending.wait()
    plane.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
