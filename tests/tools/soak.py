#!/usr/bin/env python3
"""Many applies through one `captfctl local up`: does its memory stay as it is?

    python tests/tools/soak.py [--large 1000] [--small 20000] [--objects 4] [--megabytes 7]

`--large` applies write a state of `--megabytes`, `--small` ones a tiny one, shared out among
`--objects` objects each. The runtime is a stand-in that takes no time of its own; with
`--terraform` the large ones are real Terraform. Prints resident memory, open files and
threads of the process after each tenth of each part; exits with 1 when the memory after the last
tenth of a part is more than 1.1 times that after the second, or files or threads are left.
"""

import argparse
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY))

from tests.e2e.scenarios import Story  # noqa: E402
from tests.e2e.site import IMAGE, QUICK_IMAGE, QUICKSTART, LocalSite, eventually  # noqa: E402

SOAKED = "registry.example.com/soak/cluster:v1"
MODULE = """
variable "round" { default = 0 }

resource "terraform_data" "content" {
  input = "${var.round} ${filebase64("${path.module}/random")}"
}
"""
TENTHS = 10
GROWTH = 1.1
SETTLED_SECONDS = 300.0
# A state holds input and output, each of them in base64.
BYTES_IN_STATE = 8 / 3
SLACK = 8
"""Files and threads that come and go with requests under way."""


class Sample(NamedTuple):
    """What the process holds. `rss` is in MiB."""

    applies: int
    seconds: float
    rss: float
    files: int
    threads: int

    @staticmethod
    def row(*cells: object) -> str:
        return "".join(f"{cell!s:>10}" for cell in cells) + "\n"

    def __str__(self) -> str:
        return self.row(
            self.applies, f"{self.seconds:.0f}", f"{self.rss:.1f}", self.files, self.threads
        )


class Part:
    """One kind of applies, shared out among objects that go on one after the other."""

    def __init__(
        self,
        site: LocalSite,
        name: str,
        *,
        image: str,
        objects: int,
        applies: int,
        state_bytes: int = 0,
    ) -> None:
        self._site = site
        self.name = name
        self._applies = applies
        self._lock = threading.Lock()
        self._next = 1
        self._done = 0
        self._begun = 0.0
        self._failures: list[BaseException] = []
        sizes = {"state_bytes": state_bytes} if state_bytes else {}
        self._stories = [Story(site, f"{name}-{number}", **sizes) for number in range(objects)]
        for story in self._stories:
            story.replace(IMAGE, image)
        self.samples: list[Sample] = []

    def run(self) -> None:
        for story in self._stories:
            story.create()
        for story in self._stories:
            story.wait_settled(SETTLED_SECONDS)
        self._begun = time.monotonic()
        threads = [threading.Thread(target=self._work, args=(s,)) for s in self._stories]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self._failures:
            raise self._failures[0]

    def _work(self, story: Story) -> None:
        try:
            while not self._failures and (number := self._take()) is not None:
                story.set_variables(round=number)
                eventually(story.settled, lambda: str(story.explain()), SETTLED_SECONDS)
                self._count()
        except BaseException as failure:
            self._failures.append(failure)

    def _take(self) -> int | None:
        with self._lock:
            number, self._next = self._next, self._next + 1
        return number if number <= self._applies else None

    def _count(self) -> None:
        with self._lock:
            self._done += 1
            if self._done * TENTHS // self._applies == (self._done - 1) * TENTHS // self._applies:
                return
            assert self._site.up.child is not None
            sample = measure(self._site.up.child.pid, self._done, time.monotonic() - self._begun)
            self.samples.append(sample)
            sys.stdout.write(str(sample))
            sys.stdout.flush()

    def problems(self) -> list[str]:
        """What grew."""
        early, last = self.samples[1], self.samples[-1]
        found = []
        if last.rss > early.rss * GROWTH:
            found.append(f"{self.name}: memory grew from {early.rss:.1f} to {last.rss:.1f} MiB")
        for what in ("files", "threads"):
            before, after = getattr(early, what), getattr(last, what)
            if after > before + SLACK:
                found.append(f"{self.name}: {what} grew from {before} to {after}")
        return found


def measure(pid: int, applies: int, seconds: float) -> Sample:
    """What the process holds now."""
    status = Path(f"/proc/{pid}/status").read_text()
    facts = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    return Sample(
        applies=applies,
        seconds=seconds,
        rss=int(facts["VmRSS"].split()[0]) / 1024,
        files=len(list(Path(f"/proc/{pid}/fd").iterdir())),
        threads=int(facts["Threads"]),
    )


@contextmanager
def site(megabytes: float) -> Iterator[LocalSite]:
    with tempfile.TemporaryDirectory(prefix="captf-soak-") as scratch:
        module = Path(scratch) / "module"
        shutil.copytree(QUICKSTART, module)
        (module / "content.tf").write_text(MODULE)
        (module / "random").write_bytes(os.urandom(int(megabytes * 2**20 / BYTES_IN_STATE)))
        found = LocalSite(Path(scratch) / "site")
        found.add_image(SOAKED, module=module)
        found.start()
        try:
            yield found
        finally:
            found.stop()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--large", type=int, default=1000, help="applies of a large state")
    parser.add_argument("--small", type=int, default=20_000, help="applies of a small state")
    parser.add_argument("--objects", type=int, default=4, help="objects that are applied")
    parser.add_argument("--megabytes", type=float, default=7.0, help="size of the large state")
    parser.add_argument("--terraform", action="store_true", help="the large ones by Terraform")
    options = parser.parse_args()
    problems = []
    large = {"image": QUICK_IMAGE, "state_bytes": int(options.megabytes * 2**20)}
    with site(options.megabytes) as local:
        for name, applies, more in (
            ("large", options.large, {"image": SOAKED} if options.terraform else large),
            ("small", options.small, {"image": QUICK_IMAGE}),
        ):
            if applies < TENTHS:
                continue
            sys.stdout.write(f"{name}\n")
            sys.stdout.write(Sample.row("applies", "seconds", "RSS MiB", "files", "threads"))
            sys.stdout.flush()
            part = Part(local, name, objects=options.objects, applies=applies, **more)
            part.run()
            problems += part.problems()
    sys.stdout.write("".join(f"{problem}\n" for problem in problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
