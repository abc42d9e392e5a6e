#!/usr/bin/env python3
"""Runs a real runtime and keeps what it printed, as a play of the fake runtime.

    recording_runtime.py DIRECTORY PLACE RUNTIME ARGUMENTS...

Writes DIRECTORY/<name>.out, .err and .exit, named as tests/tools/fake_runtime names its calls. The
directory PLACE, where the run takes place, is written as /captf.
"""

import re
import signal
import subprocess
import sys
from pathlib import Path


def _name(arguments: list[str]) -> str:
    if arguments[0] == "state":
        return f"state-{arguments[1]}"
    return "apply-refresh-only" if "-refresh-only" in arguments else arguments[0]


def main() -> int:
    directory, place, runtime, *arguments = sys.argv[1:]
    child = subprocess.Popen([runtime, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    signal.signal(signal.SIGTERM, lambda *_: child.send_signal(signal.SIGTERM))
    printed = child.communicate()
    name = _name(arguments)
    for suffix, data in zip(("out", "err"), printed, strict=True):
        shown = re.sub(rb"127\.0\.0\.1:\d+", b"server", data.replace(place.encode(), b"/captf"))
        Path(directory, f"{name}.{suffix}").write_bytes(shown)
    Path(directory, f"{name}.exit").write_text(str(child.returncode))
    sys.stdout.buffer.write(printed[0])
    sys.stderr.buffer.write(printed[1])
    return child.returncode


if __name__ == "__main__":
    sys.exit(main())
