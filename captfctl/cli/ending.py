"""What becomes of the runs when a command ends (local-mode.md: The end of a command)."""

import sys
from collections.abc import Iterable

from captfctl.cli.heartbeat import Heartbeat
from captfctl.cluster.door import Door
from captfctl.embedded.plane import LocalPlane
from captfctl.model import keys
from captfctl.model.core import Pod
from captfctl.model.resources import PODS
from captfctl.runs.jobs import pod_ended
from captfctl.terraform.books.apply_condition import cause
from captfctl.terraform.books.result_document import read_result, source_state
from runner import wire

ADOPTED = "the next captfctl command with this --data goes on with it"


def end_in_order(plane: LocalPlane, pulse: Heartbeat, *, interrupted: bool) -> None:
    """End the runs, say what became of each, then end everything else."""
    before = {pod.metadata.uid: pod for pod in plane.door.list(PODS).items}
    running = [pod for pod in before.values() if not pod_ended(pod)]
    if interrupted or running:
        said = "runs are asked to stop, their outcome is recorded" if running else "nothing ran"
        print(f"{'interrupted' if interrupted else 'ending'}: {said}", file=sys.stderr, flush=True)
    with pulse.doing(f"waiting for {names(running)} to end"):
        plane.end_runs()
    for pod in plane.door.list(PODS).items:
        known = before.pop(pod.metadata.uid, None)
        if known is None or not pod_ended(known):
            pulse.say(f"{name_of(pod)}  {fate(pod)}")
    for pod in before.values():
        if not pod_ended(pod):
            pulse.say(f"{name_of(pod)}  is gone: its pod was deleted")
    with pulse.doing("ending the control plane"):
        plane.stop()


def still_running(door: Door) -> str:
    """What goes on when the command ends at once; empty for nothing."""
    return names(pod for pod in door.list(PODS).items if not pod_ended(pod))


def names(pods: Iterable[Pod]) -> str:
    """The runs of these pods, for a sentence."""
    return ", ".join(map(name_of, pods))


def name_of(pod: Pod) -> str:
    """The pod's Job, as kubectl calls it; the pod itself where it has none."""
    meta = pod.metadata
    job = meta.labels.get(keys.JOB_NAME)
    prefix = "" if meta.namespace == "default" else f"{meta.namespace}/"
    return f"job/{prefix}{job}" if job else f"pod/{prefix}{meta.name}"


def fate(pod: Pod) -> str:
    """How the run of a pod ended, in a few words; that it goes on where it did not."""
    if not pod_ended(pod):
        return f"still runs: {ADOPTED}" if _began(pod) else f"had not begun: {ADOPTED}"
    if pod.status.phase == "Succeeded":
        return "was done before it was stopped"
    result = read_result(pod).result
    if result is None or result.error is None:
        return f"ended without a result{_exit(pod)}"
    if result.error_kind == wire.INTERRUPTED:
        step = f" in step {result.error.step}" if result.error.step else ""
        return f"stopped in order{step}; it is tried again at the next start"
    why = cause(result.error)
    return f"failed: {why}" if why else "failed"


def _began(pod: Pod) -> bool:
    state = source_state(pod)
    return state is not None and state.running is not None


def _exit(pod: Pod) -> str:
    state = source_state(pod)
    ended = state.terminated if state else None
    return f": {ended.reason}, exit code {ended.exit_code}" if ended else ""
