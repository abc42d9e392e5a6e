"""Recording what newly finished applies and restores did (runs.md: Records of finished applies)."""

import logging
import re
from dataclasses import dataclass, field, replace

from captfctl.cluster.door import Door
from captfctl.cluster.errors import BadRequest, Forbidden, Invalid, NotFound, TooLarge
from captfctl.model import keys, names
from captfctl.model.core import Pod, Secret
from captfctl.model.events import EventReason, Note
from captfctl.model.ops import Op
from captfctl.model.owner import Owner
from captfctl.model.resources import SECRETS
from captfctl.terraform.books.result_document import source_status
from captfctl.terraform.books.results import FinishedRun
from captfctl.terraform.books.runs import Runs
from captfctl.terraform.job.build import SOURCE_CONTAINER
from captfctl.terraform.state.records import (
    Record,
    Records,
    RunInputs,
    mark_may_have_applied,
    mark_promoted,
    mark_restored,
    record_interrupted,
    record_of,
    write_applied,
)

log = logging.getLogger(__name__)

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
# A write that the server refuses for good must not keep the object from going on.
_REFUSED = (Forbidden, Invalid, BadRequest, TooLarge)


@dataclass(slots=True)
class Recorder:
    """The records while the finished runs of one pass are written into them."""

    door: Door
    owner: Owner
    records: Records
    notes: list[Note] = field(default_factory=list)

    def record(self, runs: Runs) -> None:
        """Write what the unread ones of all finished runs did.

        Promotion comes first: it clears marks that a newer failure has to set again.
        """
        newest = runs.newest(Op.APPLY)
        success = runs.newest_success(Op.APPLY)
        if success is not None and not success.bookkept:
            self._promote(success, newest=success is newest)
        if newest is not None and not (newest.bookkept or newest.ok or newest.stopped):
            self._failed(newest)
        restore = runs.newest(Op.RESTORE)
        if restore is not None and restore.ok and not restore.bookkept:
            self._restored(restore, newest)

    def _restored(self, restore: FinishedRun, apply: FinishedRun | None) -> None:
        if apply is None or restore.finished_at > apply.finished_at:
            self._attempt(mark_restored(self.door, self.owner))

    def _failed(self, run: FinishedRun) -> None:
        """One that another apply followed was dealt with: only a lagging cache shows it unread."""
        attempt = self.records.attempt
        if attempt is None or attempt.job != run.name or not run.may_have_applied:
            return
        self._attempt(mark_may_have_applied(self.door, self.owner, run.name))
        if run.crashed:
            self._attempt(record_interrupted(self.door, self.owner, run.name))

    def _promote(self, run: FinishedRun, *, newest: bool) -> None:
        if self.records.applied is None or self.records.applied.job != run.name:
            inputs = self._source(run)
            if inputs is None:
                self._note(run, EventReason.APPLIED_INPUTS_UNKNOWN, _UNKNOWN_INPUTS)
            else:
                self._write(run, inputs)
        answered = run.job.metadata.annotations.get(keys.AFTER_INTERRUPTED_APPLY, "")
        self._attempt(
            mark_promoted(self.door, self.owner, newest=newest, answers_interrupted=answered)
        )

    def _attempt(self, record: Record | None) -> None:
        self.records = replace(self.records, attempt=record)

    def _source(self, run: FinishedRun) -> RunInputs | None:
        """The inputs of exactly this Job: its per-run Secret, else the attempt record if its."""
        secret = self._run_secret(run)
        if secret is not None:
            return replace(record_of(secret).inputs, job=run.name)
        attempt = self.records.attempt
        return attempt.inputs if attempt and attempt.job == run.name else None

    def _run_secret(self, run: FinishedRun) -> Secret | None:
        name = names.run_secret(run.name)
        try:
            secret = self.door.get(SECRETS, name, self.owner.namespace)
        except NotFound:
            return None
        owners = [ref.uid for ref in secret.metadata.owner_references]
        return secret if run.job.metadata.uid in owners else None

    def _write(self, run: FinishedRun, inputs: RunInputs) -> None:
        before = self.records.applied
        digest = pinned_image(run.pod)
        if not digest and before is not None and before.image == inputs.image:
            digest = before.digest
        try:
            applied = write_applied(self.door, self.owner, inputs, digest)
        except _REFUSED as error:
            log.warning("the applied inputs of %s were not recorded: %s", run.name, error)
            return
        self.records = replace(self.records, applied=applied)
        if not digest:
            text = f"the pod does not tell the digest of image {inputs.image}"
            self._note(run, EventReason.DIGEST_UNKNOWN, text)
        elif before is None or before.digest != digest:
            self._note(run, EventReason.DIGEST_PINNED, f"image {inputs.image} is {digest}")

    def _note(self, run: FinishedRun, reason: EventReason, text: str) -> None:
        self.notes.append(reason.says(text, job=run.name))


_UNKNOWN_INPUTS = (
    "the inputs of the successful apply are gone: neither its Secret nor the attempt record has "
    "them, so a destroy renders those of an earlier apply"
)


def pinned_image(pod: Pod | None) -> str:
    """`repository@sha256:…` of what the pod ran; empty when the kubelet does not tell.

    The repository is that of the pod's spec: the kubelet may name the mirror it pulled from.
    """
    status = source_status(pod)
    if pod is None or status is None:
        return ""
    _, at, digest = status.image_id.rpartition("@")
    if not at or not _DIGEST.fullmatch(digest):
        return ""
    spec = next((c.image for c in pod.spec.containers if c.name == SOURCE_CONTAINER), "")
    repository = _repository(spec)
    return f"{repository}@{digest}" if repository else ""


def _repository(image: str) -> str:
    """Without tag and digest. Only the last segment has a tag: a colon before it is a port's."""
    name = image.split("@", 1)[0]
    head, slash, last = name.rpartition("/")
    return f"{head}{slash}{last.split(':', 1)[0]}"
