"""What a step wants told to people as a Kubernetes event; the pass records it."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Self


class Action(StrEnum):
    """The `action` of an Event."""

    RECONCILE = "Reconcile"
    RUN = "Run"
    PLAN = "Plan"
    DELETE = "Delete"
    RESTORE = "Restore"
    CREDENTIALS = "Credentials"
    PIN = "Pin"
    REMEDIATE = "Remediate"


@dataclass(frozen=True, slots=True)
class Note:
    """One Event of the object, made from a row of `EventReason`. `job` names the related Job.

    `once`: several passes may say this; the same words are posted once.
    """

    reason: str
    note: str
    action: Action = Action.RUN
    warning: bool = False
    job: str = ""
    once: bool = False


@dataclass(frozen=True, slots=True)
class _Row:
    name: str
    action: Action
    meaning: str
    warning: bool = False


def _normal(name: str, action: Action, meaning: str) -> _Row:
    return _Row(name, action, meaning)


def _warning(name: str, action: Action, meaning: str) -> _Row:
    return _Row(name, action, meaning, warning=True)


class EventReason(StrEnum):
    """The table of the manager's events: a new event is a row here, and a caller."""

    action: Action
    meaning: str
    warning: bool

    def __new__(cls, row: _Row) -> Self:
        member = str.__new__(cls, row.name)
        member._value_ = row.name
        member.action, member.meaning, member.warning = row.action, row.meaning, row.warning
        return member

    def says(
        self, note: str, *, job: str = "", warning: bool | None = None, once: bool = False
    ) -> Note:
        """The event with this note. `warning` replaces the table's severity where it depends."""
        severity = self.warning if warning is None else warning
        return Note(self, note, self.action, severity, job, once)

    # fmt: off
    CONDITION_CHANGED = _normal("ConditionChanged", Action.RECONCILE,
        "A condition changed; a Warning where the table of reasons says so.")
    REQUEST_REFUSED = _warning("RequestRefused", Action.RECONCILE,
        "The API server refuses what a pass needs, as a full quota does. It is tried again.")
    JOB_CREATED = _normal("JobCreated", Action.RUN,
        "A Job was started: its operation, attempt and image, and why it is due.")
    JOB_SUCCEEDED = _normal("JobSucceeded", Action.RUN,
        "A Job finished well: how long it took and what it changed.")
    JOB_FAILED = _warning("JobFailed", Action.RUN,
        "A Job failed, or could not be started: the step, and when the next attempt is due.")
    JOB_INTERRUPTED = _warning("JobInterrupted", Action.RUN,
        "A Job was stopped from outside; it is tried again at once.")
    JOB_DEADLINE_EXCEEDED = _warning("JobDeadlineExceeded", Action.RUN,
        "A Job was ended by its deadline.")
    JOB_CANNOT_START = _warning("JobCannotStart", Action.RUN,
        "The node cannot start a Job's pod, or have its image: what it lacks. It is tried again.")
    STUCK_JOB_DELETED = _warning("StuckJobDeleted", Action.RUN,
        "A Job that could never start was deleted and is started again.")
    UNSTARTED_JOB_REPLACED = _normal("UnstartedJobReplaced", Action.RUN,
        "A Job had not begun when it was not wanted any more: it was deleted.")
    IMAGE_PULL_FALLBACK = _warning("ImagePullFallback", Action.RUN,
        "An image cannot be pulled: the Job was deleted, and the next one runs another image.")
    FORCE_UNLOCKED = _warning("ForceUnlocked", Action.RUN,
        "The state lock of a Job's pod that is gone is removed.")
    DESTROY_INPUTS_MISMATCH = _warning("DestroyInputsMismatch", Action.RUN,
        "The recorded inputs that a destroy uses are not those of the state.")
    WAITING_FOR_RUN_LEASE = _normal("WaitingForRunLease", Action.RUN,
        "A due Job waits for another Job or manager.")
    WAITING_FOR_CLUSTER_OPERATION = _normal("WaitingForClusterOperation", Action.RUN,
        "A due Job waits for a Job of the cluster.")
    WAITING_FOR_MACHINE_OPERATIONS = _normal("WaitingForMachineOperations", Action.RUN,
        "A due Job of the cluster waits for Jobs of its machines and pools.")
    WAITING_FOR_JOB_SLOT = _normal("WaitingForJobSlot", Action.RUN,
        "A due Job waits because as many run as may.")
    DESTRUCTIVE_PLAN_BLOCKED = _warning("DestructivePlanBlocked", Action.PLAN,
        "A run stopped before a plan that deletes or replaces something.")
    PLAN_READY = _normal("PlanReady", Action.PLAN,
        "A plan waits for approval, or has no changes.")
    PLAN_CHANGED = _warning("PlanChanged", Action.PLAN,
        "The plan has changed since it was approved; nothing was applied.")
    PLAN_APPROVED = _normal("PlanApproved", Action.PLAN, "A plan was approved: by whom.")
    PLAN_APPLIED = _normal("PlanApplied", Action.PLAN, "Exactly the approved plan was applied.")
    PLAN_SUPERSEDED = _normal("PlanSuperseded", Action.PLAN,
        "A plan was superseded; a Warning if it had been approved.")
    DIGEST_PINNED = _normal("DigestPinned", Action.PIN,
        "The digest of the applied image is recorded.")
    DIGEST_UNKNOWN = _warning("DigestUnknown", Action.PIN,
        "No digest of the applied image is known; it runs by its tag.")
    APPLIED_INPUTS_UNKNOWN = _warning("AppliedInputsUnknown", Action.PIN,
        "The inputs of a successful apply are gone: a destroy renders those of an earlier one.")
    DELETION_STARTED = _normal("DeletionStarted", Action.DELETE,
        "The deletion of the object was requested.")
    DELETION_PROTECTED = _warning("DeletionProtected", Action.DELETE,
        "A deletion is held because the object is protected.")
    DESTROYED = _normal("Destroyed", Action.DELETE, "The infrastructure is destroyed.")
    FINALIZER_REMOVED = _normal("FinalizerRemoved", Action.DELETE,
        "The object is released. Without `Destroyed`: there was nothing to destroy.")
    INFRASTRUCTURE_RETAINED = _normal("InfrastructureRetained", Action.DELETE,
        "`deletionPolicy: Retain` was carried out: what was kept.")
    FOREGROUND_DELETION_CONVERTED = _normal("ForegroundDeletionConverted", Action.DELETE,
        "The finalizer `foregroundDeletion` was removed so that the destroy comes first.")
    EXTERNALLY_MANAGED_RELEASED = _normal("ExternallyManagedReleased", Action.DELETE,
        "An externally managed object was released; nothing was destroyed.")
    PAUSED = _normal("Paused", Action.RECONCILE, "The object is paused: no Job starts.")
    RESUMED = _normal("Resumed", Action.RECONCILE, "The object is no longer paused.")
    PROVISIONED = _normal("Provisioned", Action.RECONCILE, "The infrastructure is provisioned.")
    PROVIDER_ID_SET = _normal("ProviderIDSet", Action.RECONCILE,
        "The module's provider id was written to the spec.")
    REPLICAS_WRITTEN_BACK = _normal("ReplicasWrittenBack", Action.RECONCILE,
        "The number of members of an autoscaled pool was written to its MachinePool.")
    CONTROL_PLANE_ENDPOINT_SET = _normal("ControlPlaneEndpointSet", Action.RECONCILE,
        "The module's endpoint was written to the spec.")
    FAILURE_DOMAINS_CHANGED = _normal("FailureDomainsChanged", Action.RECONCILE,
        "The module reports other failure domains.")
    EXPORTS_NOT_PUBLISHED = _warning("ExportsNotPublished", Action.RECONCILE,
        "The exports are too large for `status.exports`; machines and pools still get them.")
    INPUTS_CHANGED = _normal("InputsChanged", Action.RECONCILE,
        "A Job was started because the inputs changed.")
    STATE_ADOPTED = _normal("StateAdopted", Action.RECONCILE,
        "The state is recorded as the result of a Job.")
    STATE_LOST = _warning("StateLost", Action.RECONCILE,
        "The state is gone, or an apply ended without telling what it created.")
    STATE_REPLACED = _warning("StateReplaced", Action.RECONCILE,
        "The state is another one than was left, an older one, or its resources are gone.")
    STATE_ACCEPTED = _normal("StateAccepted", Action.RECONCILE,
        "A state that was held is used because a person accepted it.")
    STATE_NOT_SAVED = _warning("StateNotSaved", Action.RECONCILE,
        "A run could not store the state that it left.")
    UNSAVED_STATE_STORED = _normal("UnsavedStateStored", Action.RECONCILE,
        "A state that a run could not store is stored now.")
    STATE_LARGE = _warning("StateLarge", Action.RECONCILE,
        "The state is over 80 % of the size that can be read, or over all of it.")
    STATE_LOCKED = _warning("StateLocked", Action.RECONCILE,
        "Something else than our Jobs holds the state lock.")
    STATE_UNREADABLE = _warning("StateUnreadable", Action.RECONCILE,
        "The state is corrupt, encrypted or inconsistent.")
    RETAINED_STATE_FOUND = _warning("RetainedStateFound", Action.RECONCILE,
        "Secrets that an earlier object of this name kept are in the way.")
    RETAINED_STATE_ADOPTED = _normal("RetainedStateAdopted", Action.RECONCILE,
        "Secrets kept by an earlier object were taken over.")
    OUTPUTS_INVALID = _warning("OutputsInvalid", Action.RECONCILE,
        "The module's outputs break its contract.")
    DRIFT_DETECTED = _warning("DriftDetected", Action.RECONCILE,
        "The infrastructure differs from what was applied.")
    DRIFT_RESOLVED = _normal("DriftResolved", Action.RECONCILE,
        "The infrastructure is again as it was applied.")
    DRIFT_REMEDIATION_STARTED = _normal("DriftRemediationStarted", Action.REMEDIATE,
        "An apply corrects the drift that was found.")
    REMEDIATION_REQUESTED = _warning("RemediationRequested", Action.REMEDIATE,
        "The Machine was marked for replacement, as its infrastructure is not healthy.")
    REMEDIATION_WITHDRAWN = _normal("RemediationWithdrawn", Action.REMEDIATE,
        "The mark for replacement was taken off the Machine, which is healthy again.")
    INSTANCE_HEALTHY = _normal("InstanceHealthy", Action.RECONCILE,
        "The infrastructure became healthy.")
    INSTANCE_UNHEALTHY = _warning("InstanceUnhealthy", Action.RECONCILE,
        "The infrastructure is not healthy any more.")
    STATE_BACKED_UP = _normal("StateBackedUp", Action.RECONCILE,
        "The state was copied to a backup: its serial, size and name.")
    STATE_NOT_BACKED_UP = _warning("StateNotBackedUp", Action.RECONCILE,
        "The state could not be backed up; it is tried again every minute.")
    STATE_RESTORED = _normal("StateRestored", Action.RESTORE, "A backup of the state was restored.")
    STATE_RESTORE_FAILED = _warning("StateRestoreFailed", Action.RESTORE,
        "A backup of the state was not restored.")
    IDENTITY_NOT_ALLOWED = _warning("IdentityNotAllowed", Action.CREDENTIALS,
        "The object cannot use its identity.")
    IDENTITY_SECRET_NOT_FOUND = _warning("IdentitySecretNotFound", Action.CREDENTIALS,
        "On an identity: its Secret does not exist.")
    IDENTITY_SECRET_FOUND = _normal("IdentitySecretFound", Action.CREDENTIALS,
        "On an identity: its Secret exists now.")
    MIRROR_CREATED = _normal("MirrorCreated", Action.CREDENTIALS,
        "The credentials were copied to the namespace.")
    MIRROR_REMOVED = _normal("MirrorRemoved", Action.CREDENTIALS,
        "The copy of the credentials was removed.")
    OWNER_REFERENCES_REPAIRED = _normal("OwnerReferencesRepaired", Action.CREDENTIALS,
        "Secrets that named an earlier object of this name as their owner were corrected.")
