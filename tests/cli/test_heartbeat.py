"""A command in a pipe says what it waits for before anybody has to guess."""

import itertools

from captfctl.cli.display import Lines
from captfctl.cli.heartbeat import LOOK_SECONDS, SILENCE_SECONDS, Heartbeat
from captfctl.cli.settled import Standing, Verdict
from captfctl.cli.targets import Target
from tests.support.clock import FakeClock, eventually

ONE = Target("TerraformCluster", "default", "one")
TWO = Target("TerraformCluster", "team", "two")


class Said:
    """What was printed, and when."""

    def __init__(self, capsys, clock):
        self.capsys, self.clock, self.lines = capsys, clock, []

    def more(self):
        self.lines += [(self.clock.monotonic(), line) for line in self._new()]
        return self.lines

    def _new(self):
        return self.capsys.readouterr().out.splitlines()


def test_a_long_wait_is_told_again_and_again_with_its_length(capsys):
    clock = FakeClock()
    said = Said(capsys, clock)
    with Heartbeat(clock) as pulse, pulse.doing("waiting for job/a to end"):
        clock.run_with_waiter(lambda: len(said.more()) == 3, step=LOOK_SECONDS)
    assert said.lines[0][1] == f"waiting for job/a to end ({SILENCE_SECONDS:.0f}s)"
    times = [0.0, *(at for at, _ in said.lines)]
    assert max(later - at for at, later in itertools.pairwise(times)) <= 10


def test_what_is_said_otherwise_puts_the_next_line_off(capsys):
    clock = FakeClock()
    said = Said(capsys, clock)
    with Heartbeat(clock) as pulse, pulse.doing("waiting"):
        clock.advance(SILENCE_SECONDS - 1)
        pulse.say("something happened")
        clock.run_with_waiter(lambda: len(said.more()) == 2, step=LOOK_SECONDS)
    (_, first), (at, second) = said.lines
    assert (first, second.startswith("waiting")) == ("something happened", True)
    assert at >= 2 * SILENCE_SECONDS - 1


def test_nothing_is_said_where_something_else_shows_what_goes_on(capsys):
    clock = FakeClock()
    with Heartbeat(clock) as pulse:
        with pulse.doing("waiting"):
            pass
        clock.advance(60)
        eventually(lambda: not pulse._ended.wait(0.01), "a look")
    assert capsys.readouterr().out == ""


def test_lines_name_what_is_not_settled_however_many_objects_there_are(capsys):
    clock = FakeClock()
    said = Said(capsys, clock)
    verdicts = {
        ONE: Verdict(Standing.READY),
        TWO: Verdict(Standing.WORKING, "Job j runs"),
        Target("TerraformMachine", "team", "three"): Verdict(Standing.WORKING),
    }
    with Heartbeat(clock) as pulse:
        lines = Lines(10, pulse)
        lines.waiting(verdicts)
        clock.run_with_waiter(lambda: bool(said.more()), step=LOOK_SECONDS)
        lines.close()
    [(_, line)] = said.lines
    assert "terraformcluster/team/two  still working: Job j runs; and 1 more of 3" in line
