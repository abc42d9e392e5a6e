"""The table of reasons: what each reason of each condition means and what a person can do.

One class per condition type, one row per reason; a new reason is a row here, and the code that sets
it with `says`. Events, metrics, `captfctl reconcile` and docs/reference/reasons.md read the table.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Self

from captfctl.model.condition_types import (
    FALSE,
    NEGATIVE,
    TRUE,
    UNKNOWN,
    ConditionValue,
    Type,
)
from captfctl.model.events import EventReason


class Standing(StrEnum):
    """What a reason says about the object's way to its goal."""

    DONE = "done"
    PROGRESSING = "progressing"
    WAITS = "waits by itself"
    PERSON = "waits for a person"
    FAILING = "failing"
    BROKEN = "broken"


DONE, PROGRESSING, WAITS = Standing.DONE, Standing.PROGRESSING, Standing.WAITS
PERSON, FAILING, BROKEN = Standing.PERSON, Standing.FAILING, Standing.BROKEN

_WARNS = frozenset({PERSON, FAILING, BROKEN})


@dataclass(frozen=True, slots=True)
class _Row:
    """`remedy`: one line; empty where there is nothing to do. `warning`: whether the transition to
    it is a Warning; None: when a person should look at it, by its standing. `event`: the event of
    the transition, where it is another than its class has. `metric`: its label, where it is
    counted. `silent`: the condition may have an empty message.
    """

    status: str
    name: str
    standing: Standing
    meaning: str
    remedy: str = ""
    warning: bool | None = None
    event: EventReason | None = None
    metric: str = ""
    silent: bool = False


class Reason(StrEnum):
    """A reason of a condition; `types` are the condition types that may have it.

    `event` of a subclass: the event of the transition to those of its reasons that are `bad`;
    without one it is `ConditionChanged`.
    """

    status: str
    standing: Standing
    meaning: str
    remedy: str
    warning: bool
    metric: str
    silent: bool
    types: ClassVar[tuple[Type, ...]]
    _own_event: EventReason | None
    _types_event: ClassVar[EventReason | None]

    def __new__(cls, row: _Row) -> Self:
        member = str.__new__(cls, row.name)
        member._value_ = row.name
        member.status, member.standing = row.status, row.standing
        member.meaning, member.remedy = row.meaning, row.remedy
        member.warning = row.standing in _WARNS if row.warning is None else row.warning
        member.metric, member.silent = row.metric, row.silent
        member._own_event = row.event
        return member

    def __init_subclass__(cls, types: tuple[Type, ...], event: EventReason | None = None) -> None:
        cls.types, cls._types_event = types, event

    @property
    def bad(self) -> bool:
        """Whether the status is the one that says that something is wrong."""
        return self.status == (TRUE if self.types[0] in NEGATIVE else FALSE)

    @property
    def event(self) -> EventReason:
        """The event of the transition to it."""
        own = self._own_event or (self._types_event if self.bad else None)
        return own or EventReason.CONDITION_CHANGED

    def says(self, message: str = "") -> ConditionValue:
        """The condition with this reason. An empty message stands for the reason."""
        return ConditionValue(self.status, self, message)


# fmt: off

class Ready(Reason, types=(Type.READY,)):
    """Of cluster, machine and pool: the summary of the other conditions."""

    READY = _Row(TRUE, "Ready", DONE, "Every condition that counts is good.", silent=True)
    NOT_READY = _Row(FALSE, "NotReady", FAILING,
        "A condition that counts is bad; the message names it.",
        "Look at the conditions that the message names.")
    READY_UNKNOWN = _Row(UNKNOWN, "ReadyUnknown", WAITS,
        "A condition that counts is not known yet; the message names it.")


class IdentityReady(Reason, types=(Type.READY,)):
    """`Ready` of a `TerraformClusterIdentity`."""

    SECRET_FOUND = _Row(TRUE, "SecretFound", DONE, "The Secret exists and has the required keys.")
    SECRET_NOT_FOUND = _Row(FALSE, "SecretNotFound", PERSON,
        "The Secret does not exist.",
        "Create the Secret that spec.secretRef names; it is not moved with the objects.")
    CREDENTIALS_INCOMPLETE = _Row(FALSE, "CredentialsIncomplete", PERSON,
        "The Secret lacks required keys; the message lists them.",
        "Add the keys to the Secret, or take them off spec.requiredKeys.")
    IN_USE = _Row(FALSE, "InUse", WAITS,
        "It is being deleted, and goes with the last copy of its credentials.",
        "Delete the objects that use it, or let them name another identity.")


class CapacityResolved(Reason, types=(Type.CAPACITY_RESOLVED,)):
    """Whether a `TerraformMachineTemplate` tells autoscalers what a Node of it offers."""

    RESOLVED = _Row(TRUE, "CapacityResolved", DONE,
        "status.capacity is what spec.capacity says.")
    NOT_DECLARED = _Row(TRUE, "CapacityNotDeclared", DONE,
        "No capacity is known, so an autoscaler cannot grow a group of no Nodes.",
        "To autoscale from zero, set spec.capacity of the template.")


class PlanReady(Reason, types=(Type.READY,)):
    """`Ready` of a `TerraformPlan`: whether it can be or was applied."""

    PENDING = _Row(TRUE, "Pending", PERSON,
        "The plan waits for an approval; nothing of it is applied.",
        "Read the plan, then approve it with captfctl approve, or change the inputs.",
        warning=False)
    APPROVED = _Row(TRUE, "Approved", PROGRESSING,
        "The plan is approved and its apply has not ended.")
    APPLIED = _Row(TRUE, "Applied", DONE, "Exactly this plan was applied.")
    FAILED = _Row(FALSE, "Failed", DONE,
        "The plan has changed since it was approved; nothing was applied.",
        "Read and approve the plan that took its place.")
    SUPERSEDED = _Row(FALSE, "Superseded", DONE,
        "Another plan took its place, or there is nothing left to apply; the message tells.")


class PlanApproved(Reason, types=(Type.APPROVED,)):
    """Of a `TerraformPlan`: whether somebody approved it; the message names who."""

    APPROVED = _Row(TRUE, "Approved", DONE, "It was approved, whatever became of it.")
    PENDING = _Row(FALSE, "Pending", PERSON,
        "Nobody has approved it yet.",
        "Approve it with captfctl approve, or set spec.approved and spec.approvedBy.",
        warning=False)
    NOT_APPROVED = _Row(FALSE, "NotApproved", DONE, "It was superseded, and never approved.")
    APPROVAL_IGNORED = _Row(FALSE, "ApprovalIgnored", PERSON,
        "It was approved and then superseded before it was applied: the approval applies nothing.",
        "Read and approve the object's current plan.")


class Paused(Reason, types=(Type.PAUSED,)):
    """Whether the object is paused; then finished Jobs are read and nothing starts."""

    PAUSED = _Row(TRUE, "Paused", PERSON,
        "The Cluster or the object is paused; the message says which.",
        "Set spec.paused of the Cluster to false, or remove the pause annotation.", warning=False)
    NOT_PAUSED = _Row(FALSE, "NotPaused", DONE, "The object is not paused.")


class DependenciesReady(Reason, types=(Type.DEPENDENCIES_READY,)):
    """Whether everything that the inputs are built from is there."""

    DEPENDENCIES_READY = _Row(TRUE, "DependenciesReady", DONE, "The inputs can be built.")
    WAITING_FOR_OWNER = _Row(UNKNOWN, "WaitingForOwner", WAITS,
        "Cluster API has not set the owner reference yet.",
        "If it lasts: let infrastructureRef of a Cluster name this object.")
    WAITING_FOR_OWNER_MACHINE = _Row(FALSE, "WaitingForOwnerMachine", WAITS,
        "Only the control plane owns the object so far, no Machine.",
        "If it lasts: let infrastructureRef of a Machine name this object.")
    WAITING_FOR_OWNER_MACHINE_POOL = _Row(FALSE, "WaitingForOwnerMachinePool", WAITS,
        "Something owns the object, but no MachinePool does.",
        "If it lasts: let infrastructureRef of a MachinePool name this object.")
    OWNER_NOT_FOUND = _Row(FALSE, "OwnerNotFound", PERSON,
        "The object of Cluster API that owns this one does not exist.",
        "Delete the object if its owner will not return; its infrastructure is destroyed.")
    OWNER_MISMATCH = _Row(FALSE, "OwnerMismatch", PERSON,
        "The object of Cluster API that owns this one does not refer to it.",
        "Correct the owner's infrastructureRef, or the object's label or owner reference.")
    CLUSTER_NOT_TERRAFORM = _Row(FALSE, "ClusterNotTerraform", PERSON,
        "The Cluster's infrastructure is not a TerraformCluster.",
        "Use this kind of object only in a Cluster whose infrastructureRef is a TerraformCluster.")
    WAITING_FOR_CLUSTER_INFRASTRUCTURE = _Row(UNKNOWN, "WaitingForClusterInfrastructure", WAITS,
        "The infrastructure of the Cluster is not provisioned yet.",
        "If it lasts: look at the conditions of the TerraformCluster.")
    WAITING_FOR_CLUSTER_EXPORTS = _Row(UNKNOWN, "WaitingForClusterExports", WAITS,
        "The cluster's state or its output `exports` cannot be used yet.",
        "If it lasts: look at StateReadable and OutputsValid of the TerraformCluster.")
    WAITING_FOR_BOOTSTRAP_DATA = _Row(UNKNOWN, "WaitingForBootstrapData", WAITS,
        "There is no bootstrap data yet.",
        "If it lasts: look at the bootstrap configuration of the owner.")
    VARIABLES_SOURCE_NOT_FOUND = _Row(FALSE, "VariablesSourceNotFound", PERSON,
        "A Secret or ConfigMap of spec.variablesFrom is missing or not labelled for it.",
        "Create it with the label captf.io/variables=true, or mark the reference optional.")
    VARIABLES_INVALID = _Row(FALSE, "VariablesInvalid", PERSON,
        "A variable has a bad or reserved name, or a value that is no UTF-8 or no JSON, or "
        "a module on this machine does not declare it, or requires one that is not set.",
        "Correct the source and key, or the variable, that the message names.")


class IdentityAllowed(
    Reason, types=(Type.IDENTITY_ALLOWED,), event=EventReason.IDENTITY_NOT_ALLOWED
):
    """Whether the object may use its identity."""

    IDENTITY_ALLOWED = _Row(TRUE, "IdentityAllowed", DONE, "The identity can be used here.")
    LOCAL_SECRET = _Row(TRUE, "LocalSecret", DONE, "A Secret of the object's namespace is used.")
    IDENTITY_NOT_FOUND = _Row(FALSE, "IdentityNotFound", PERSON,
        "No identity is named, or it does not exist.",
        "Set spec.identityRef, or create the TerraformClusterIdentity that it names.",
        metric="notfound")
    NAMESPACE_NOT_ALLOWED = _Row(FALSE, "NamespaceNotAllowed", PERSON,
        "The identity does not allow the object's namespace.",
        "Add the namespace to spec.allowedNamespaces of the identity.", metric="namespace")
    IDENTITY_DELETING = _Row(FALSE, "IdentityDeleting", PERSON,
        "The identity is being deleted; it serves only the objects that use it already.",
        "Name another identity, or create it again once it is gone.", metric="deleting")
    COPY_KEPT = _Row(TRUE, "CopyKept", DONE,
        "The identity or its Secret is gone; the destroy uses the copy of it that exists.")
    SECRET_NOT_FOUND = _Row(FALSE, "SecretNotFound", PERSON,
        "The Secret with the credentials does not exist.",
        "Create the Secret that the message names; it is not moved with the objects.",
        metric="notfound")
    CREDENTIALS_INCOMPLETE = _Row(FALSE, "CredentialsIncomplete", PERSON,
        "The Secret lacks required keys; the message lists them.",
        "Add the keys to the Secret, or take them off spec.requiredKeys of the identity.")
    IDENTITY_CHECK_FAILED = _Row(UNKNOWN, "IdentityCheckFailed", BROKEN,
        "The identity could not be checked; the check is repeated.",
        "If it lasts: look at the API server, and at the rights of the manager.")


class CredentialsMirrored(Reason, types=(Type.CREDENTIALS_MIRRORED,)):
    """Whether the credentials are in the object's namespace."""

    MIRRORED = _Row(TRUE, "Mirrored", DONE, "The credentials are there and current.")
    MIRROR_PENDING = _Row(UNKNOWN, "MirrorPending", WAITS,
        "There is nothing to copy while the identity cannot be used.",
        "Look at IdentityAllowed.")
    MIRROR_FAILED = _Row(FALSE, "MirrorFailed", PERSON,
        "The copy cannot be written, or a Secret of somebody else has its name.",
        "Rename or delete the Secret that the message names, or correct the error it tells.")


class RunnerRBACReady(Reason, types=(Type.RUNNER_RBAC_READY,)):
    """Whether Jobs can run under their ServiceAccount."""

    RBAC_READY = _Row(TRUE, "RBACReady", DONE, "ServiceAccount and RoleBinding are in place.")
    RBAC_FAILED = _Row(FALSE, "RBACFailed", PERSON,
        "They cannot be created, or a RoleBinding of somebody else has the name.",
        "Rename or delete the RoleBinding, or correct the error that the message tells.")
    SERVICE_ACCOUNT_NOT_OPTED_IN = _Row(FALSE, "ServiceAccountNotOptedIn", PERSON,
        "The ServiceAccount that the spec names is missing or not labelled for it.",
        "Create it with the label captf.io/runner=true, or name none in the spec.")


_JOB_TYPES = (Type.APPLY_JOB_SUCCEEDED, Type.RESTORE_JOB_SUCCEEDED, Type.DRIFT_JOB_SUCCEEDED)


class WaitReason(Reason, types=_JOB_TYPES):
    """Why a due Job does not start now. Never a failure, and never slowed down."""

    RUN_LEASE = _Row(UNKNOWN, "WaitingForRunLease", WAITS,
        "Another Job of the object, or another manager, holds its run lease.",
        event=EventReason.WAITING_FOR_RUN_LEASE, metric="run_lease")
    CLUSTER_OPERATION = _Row(UNKNOWN, "WaitingForClusterOperation", WAITS,
        "A machine or pool waits for a Job of its cluster.",
        event=EventReason.WAITING_FOR_CLUSTER_OPERATION, metric="cluster_operation")
    MACHINE_OPERATIONS = _Row(UNKNOWN, "WaitingForMachineOperations", WAITS,
        "The cluster waits for Jobs of its machines and pools; new ones queue behind it.",
        event=EventReason.WAITING_FOR_MACHINE_OPERATIONS, metric="machine_operations")
    JOB_SLOT = _Row(UNKNOWN, "WaitingForJobSlot", WAITS,
        "As many Jobs run as may, of the manager or of the cluster.",
        "If it lasts: raise --max-active-jobs, or spec.maxActiveJobs of the cluster.",
        event=EventReason.WAITING_FOR_JOB_SLOT, metric="job_slot")


class JobFailure(Reason, types=_JOB_TYPES, event=EventReason.JOB_FAILED):
    """What any Job can fail with."""

    NAMESPACE_TERMINATING = _Row(FALSE, "NamespaceTerminating", PERSON,
        "The namespace is being deleted, so no Job can be created in it.",
        "Save the state, destroy by hand or leave it, then set spec.deletionPolicy to Retain.")
    IMAGE_PULL_FAILED = _Row(FALSE, "ImagePullFailed", FAILING,
        "The image of the Job cannot be pulled.",
        "Push the image again, or correct spec.source.image or the pull Secrets.")


class ApplyJobSucceeded(
    Reason, types=(Type.APPLY_JOB_SUCCEEDED,), event=EventReason.JOB_FAILED
):
    """What became of the newest apply or destroy, or what keeps the next one from starting."""

    APPLY_SUCCEEDED = _Row(TRUE, "ApplySucceeded", DONE, "The newest apply succeeded.")
    DESTROY_SUCCEEDED = _Row(TRUE, "DestroySucceeded", DONE, "The destroy succeeded.")
    NO_APPLY_YET = _Row(UNKNOWN, "NoApplyYet", WAITS, "No apply has finished yet.")
    APPLY_FAILED = _Row(FALSE, "ApplyFailed", FAILING,
        "The newest apply failed, or ended without telling what it applied.",
        "Fix the cause named in the message and the Job's log; it is retried with backoff.")
    DESTROY_FAILED = _Row(FALSE, "DestroyFailed", FAILING,
        "The destroy failed, or there are no inputs to destroy with.",
        "Fix the cause named in the message, or set spec.deletionPolicy to Retain.")
    JOB_DEADLINE_EXCEEDED = _Row(FALSE, "JobDeadlineExceeded", FAILING,
        "The Job was ended by its deadline.",
        "Raise spec.jobs.activeDeadlineSeconds, or correct what hangs.")
    IMAGE_INVALID = _Row(FALSE, "ImageInvalid", FAILING,
        "The image lacks the module or a runtime that can be run.",
        "Publish an image that keeps the contract for images.")
    DESTRUCTIVE_PLAN_BLOCKED = _Row(FALSE, "DestructivePlanBlocked", PERSON,
        "The run stopped before a plan that deletes or replaces something; nothing was applied.",
        "Approve the plan that the message names, or change the inputs.",
        event=EventReason.DESTRUCTIVE_PLAN_BLOCKED)
    PLAN_AWAITING_APPROVAL = _Row(UNKNOWN, "PlanAwaitingApproval", PERSON,
        "spec.applyPolicy is Manual and a plan waits for an approval.",
        "Read the plan, then run the command that the message ends with.", warning=False)
    PLAN_CHANGED = _Row(UNKNOWN, "PlanChanged", PERSON,
        "What would be done is not what was approved any more; nothing was applied.",
        "Read the plan that took its place, and approve that one.", warning=False)
    IDENTITY_NOT_ALLOWED = _Row(FALSE, "IdentityNotAllowed", PERSON,
        "The destroy needs credentials that the identity does not grant.",
        "Restore the access, or set spec.deletionPolicy to Retain.")
    INPUTS_TOO_LARGE = _Row(FALSE, "InputsTooLarge", PERSON,
        "The rendered inputs do not fit into a Secret.",
        "Make the variables or the cluster's exports smaller.")
    JOB_POLICY_INVALID = _Row(FALSE, "JobPolicyInvalid", PERSON,
        "The lock timeout of the Jobs is not below their deadline.",
        "Lower spec.jobs.lockTimeoutSeconds, or raise spec.jobs.activeDeadlineSeconds.")


_PUT_BACK = (
    "Restore one of the backups that the message lists, or put the Secrets of the state back from "
    "a copy of yours; or delete the object with spec.deletionPolicy Retain."
)


class StateReadable(Reason, types=(Type.STATE_READABLE,)):
    """Whether the Terraform state can be read and trusted; no Job runs while it cannot."""

    STATE_READ = _Row(TRUE, "StateRead", DONE, "The state was read.", silent=True)
    STATE_NOT_FOUND = _Row(UNKNOWN, "StateNotFound", WAITS,
        "There is no state, and nothing was applied yet.")
    STATE_LOST = _Row(FALSE, "StateLost", PERSON,
        "The object was applied before and its state is gone.",
        _PUT_BACK, event=EventReason.STATE_LOST, metric="lost")
    STATE_REPLACED = _Row(FALSE, "StateReplaced", PERSON,
        "The state is another one than was left, an older one, or its resources are gone.",
        "Restore one of the backups that the message lists, or accept the state that is there now.",
        event=EventReason.STATE_REPLACED, metric="replaced")
    STATE_NOT_SAVED = _Row(FALSE, "StateNotSaved", WAITS,
        "A run could not store the state that it left; it is kept, and the next run stores it.",
        event=EventReason.STATE_NOT_SAVED, warning=True, metric="notsaved")
    UNSAVED_STATE_LOST = _Row(FALSE, "UnsavedStateLost", PERSON,
        "A run could neither store nor keep the state that it left.",
        "Look at what exists, bring the state in line with it, and accept it.",
        event=EventReason.STATE_NOT_SAVED, metric="unsavedlost")
    APPLY_OUTCOME_UNKNOWN = _Row(FALSE, "ApplyOutcomeUnknown", PERSON,
        "An apply ended without telling what it created, and there is no state.",
        "Look at what exists, then take one of the ways that the message names.",
        event=EventReason.STATE_LOST, metric="applyoutcomeunknown")
    STATE_LARGE = _Row(TRUE, "StateLarge", DONE,
        "The state was read, and is over 80 % of the size that can be read.",
        "Move resources to another module, or keep large values out of attributes and outputs.",
        warning=True, event=EventReason.STATE_LARGE)
    STATE_NOT_BACKED_UP = _Row(TRUE, "StateNotBackedUp", DONE,
        "The state was read, and its backup could not be written; it is tried again every minute.",
        "Fix the cause named in the message, such as an exceeded quota or a missing permission.",
        warning=True, event=EventReason.STATE_NOT_BACKED_UP)
    STATE_TOO_LARGE = _Row(FALSE, "StateTooLarge", PERSON,
        "The state is too large to be read; a deletion destroys all the same.",
        "Make it smaller with `terraform state rm`, or delete the object.",
        event=EventReason.STATE_LARGE, metric="toolarge")
    STATE_CORRUPT = _Row(FALSE, "StateCorrupt", PERSON,
        "The state cannot be decoded, or is of an unsupported version.",
        _PUT_BACK, event=EventReason.STATE_UNREADABLE, metric="corrupt")
    STATE_ENCRYPTED = _Row(FALSE, "StateEncrypted", PERSON,
        "The module encrypts its state, which is not supported.",
        "Take the encryption out of the module and push a decrypted state.",
        event=EventReason.STATE_UNREADABLE, metric="encrypted")
    STATE_INCONSISTENT = _Row(FALSE, "StateInconsistent", PERSON,
        "Secrets of the state are missing, duplicated or stale.",
        _PUT_BACK, event=EventReason.STATE_UNREADABLE, metric="inconsistent")
    STATE_LOCKED = _Row(FALSE, "StateLocked", PERSON,
        "Something other than the object's Jobs holds the lock of the state.",
        "Let it finish, or unlock with the runtime's force-unlock once its holder is gone.",
        event=EventReason.STATE_LOCKED, metric="locked")
    RETAINED_STATE_FOUND = _Row(FALSE, "RetainedStateFound", PERSON,
        "An earlier object of this name kept its state.",
        "Set spec.adoptRetainedState to take it over, or delete those Secrets.",
        event=EventReason.RETAINED_STATE_FOUND, metric="retainedstatefound")


class RestoreJobSucceeded(Reason, types=(Type.RESTORE_JOB_SUCCEEDED,)):
    """What became of a requested restore; the condition is there only while one is requested."""

    STATE_RESTORED = _Row(TRUE, "StateRestored", DONE, "The state was restored.")
    RESTORE_FAILED = _Row(FALSE, "RestoreFailed", PERSON,
        "The restore failed; the same serial is not tried again while the annotation names it.",
        "Fix the cause named in the message; then remove the annotation, and set it again.")
    RESTORE_BACKUP_NOT_FOUND = _Row(FALSE, "RestoreBackupNotFound", PERSON,
        "There is no complete and intact backup of what the annotation asks for.",
        "Ask for one of the serials that the message lists, or remove the annotation.",
        event=EventReason.STATE_RESTORE_FAILED)


class OutputsValid(Reason, types=(Type.OUTPUTS_VALID,), event=EventReason.OUTPUTS_INVALID):
    """Whether the module's outputs keep its contract."""

    OUTPUTS_VALID = _Row(TRUE, "OutputsValid", DONE, "Every output is as it should be.")
    INSTANCES_TRUNCATED = _Row(TRUE, "InstancesTruncated", DONE,
        "The module lists more than an object can hold; cut off.")
    OUTPUTS_PENDING = _Row(UNKNOWN, "OutputsPending", WAITS,
        "Required outputs are null, or there is no state yet.")
    OUTPUTS_MISSING = _Row(FALSE, "OutputsMissing", PERSON,
        "Required outputs are not in the state.",
        "Declare the outputs in the module and publish it.", metric="OutputsMissing")
    OUTPUTS_INVALID = _Row(FALSE, "OutputsInvalid", PERSON,
        "Outputs have a wrong type, shape or value.",
        "Correct the outputs in the module and publish it.", metric="OutputsInvalid")
    FAILURE_DOMAIN_MISMATCH = _Row(FALSE, "FailureDomainMismatch", PERSON,
        "The machine is not in the failure domain that its Machine asks for.",
        "Correct the module, then replace the Machine.", metric="FailureDomainMismatch")
    PROVIDER_ID_CHANGED = _Row(FALSE, "ProviderIDChanged", PERSON,
        "The module reports another provider id than before.",
        "Delete the Machine, so that it is replaced.", metric="ProviderIDChanged")


class InfrastructureHealthy(Reason, types=(Type.INFRASTRUCTURE_HEALTHY,)):
    """How the infrastructure is, as the module reports it."""

    HEALTHY = _Row(TRUE, "Healthy", DONE, "It runs and is healthy.")
    WAITING_FOR_PROVISIONING = _Row(UNKNOWN, "WaitingForProvisioning", WAITS,
        "Nothing was applied yet.")
    PROVISIONING = _Row(FALSE, "Provisioning", PROGRESSING,
        "The first apply has begun and has not succeeded; the message tells what is the case.")
    INSTANCE_PENDING = _Row(FALSE, "InstancePending", PROGRESSING, "It is still coming up.")
    INSTANCE_UNHEALTHY = _Row(FALSE, "InstanceUnhealthy", PERSON,
        "It runs and is not healthy.",
        "Look at what the message tells, in the infrastructure itself.")
    INSTANCE_DEGRADED = _Row(FALSE, "InstanceDegraded", PERSON,
        "Only a part of it works.",
        "Look at what the message tells, in the infrastructure itself.")
    INSTANCE_STOPPED = _Row(FALSE, "InstanceStopped", PERSON,
        "It was stopped.",
        "Start it again where it runs.")
    INSTANCE_TERMINATED = _Row(FALSE, "InstanceTerminated", PERSON,
        "It does not exist any more.",
        "Find out who removed it; the next apply creates it again if the module does.")
    PROVIDER_ID_MISSING = _Row(UNKNOWN, "ProviderIDMissing", WAITS,
        "The module reported no provider id once; the next such reading means terminated.")
    HEALTH_UNKNOWN = _Row(UNKNOWN, "HealthUnknown", PERSON,
        "The module reports no health that can be understood.",
        "Correct the module's output `health`.")


class DriftJobSucceeded(Reason, types=(Type.DRIFT_JOB_SUCCEEDED,)):
    """What became of the newest check of the infrastructure."""

    DRIFT_CHECKED = _Row(TRUE, "DriftChecked", DONE, "The newest check succeeded.")
    DRIFT_NOT_CHECKED = _Row(UNKNOWN, "DriftNotChecked", WAITS,
        "No check has finished yet, or checks are off.")
    DRIFT_JOB_RUNNING = _Row(UNKNOWN, "DriftJobRunning", PROGRESSING, "A check is running.")
    DRIFT_JOB_FAILED = _Row(FALSE, "DriftJobFailed", FAILING,
        "The newest check failed.",
        "Correct what the Job's log tells; it is retried with backoff.")
    DRIFT_JOB_DEADLINE_EXCEEDED = _Row(FALSE, "DriftJobDeadlineExceeded", FAILING,
        "The check was ended by its deadline.",
        "Raise spec.jobs.activeDeadlineSeconds, or correct what hangs.")
    DURABLE_INPUTS_MISSING = _Row(UNKNOWN, "DurableInputsMissing", PERSON,
        "There are no inputs to check with.",
        "Correct what keeps the inputs from being built; a successful apply records them.")


class DriftDetected(Reason, types=(Type.DRIFT_DETECTED,), event=EventReason.DRIFT_DETECTED):
    """Whether the infrastructure differs from what was applied."""

    DRIFT_NOT_CHECKED = _Row(UNKNOWN, "DriftNotChecked", WAITS, "No check has finished yet.")
    NO_DRIFT = _Row(FALSE, "NoDrift", DONE, "Nothing differs, or an apply corrected it.")
    DRIFT_REPORTED = _Row(TRUE, "DriftReported", PERSON,
        "Something differs, and spec.drift.action is Report.",
        "Undo the change, put it into the inputs, or set spec.drift.action to Remediate.")
    DRIFT_PENDING = _Row(TRUE, "DriftPending", WAITS,
        "Something differs and an apply that corrects it is due.",
        warning=True)
    DRIFT_REMEDIATING = _Row(TRUE, "DriftRemediating", PROGRESSING,
        "An apply that corrects the difference is running.",
        warning=True)


class InputsApplied(Reason, types=(Type.INPUTS_APPLIED,)):
    """Whether what the spec asks for is applied."""

    INPUTS_APPLIED = _Row(TRUE, "InputsApplied", DONE, "The current inputs are applied.")
    APPLY_RUNNING = _Row(FALSE, "ApplyRunning", PROGRESSING, "An apply is running.")
    APPLY_PENDING = _Row(FALSE, "ApplyPending", WAITS, "The current inputs are not applied yet.")
    AWAITING_APPROVAL = _Row(FALSE, "AwaitingApproval", PERSON,
        "Changed inputs wait for an approval.",
        "Look at ApplyJobSucceeded.")
    INPUTS_APPLY_FAILED = _Row(FALSE, "InputsApplyFailed", FAILING,
        "The last apply did not succeed.",
        "Look at ApplyJobSucceeded.")
    INPUTS_UNAVAILABLE = _Row(UNKNOWN, "InputsUnavailable", WAITS,
        "The inputs cannot be built now.",
        "Look at DependenciesReady and StateReadable.")


class Reconciling(Reason, types=(Type.RECONCILING,)):
    """Whether the object is on its way to what the spec asks for, as kstatus understands it."""

    INPUTS_NOT_APPLIED = _Row(TRUE, "InputsNotApplied", PROGRESSING,
        "The inputs are on their way; see InputsApplied.")
    RECONCILED = _Row(FALSE, "Reconciled", DONE, "Nothing is on its way, or an apply failed.")


class Deleting(Reason, types=(Type.DELETING,)):
    """Whether the object is being deleted."""

    DELETING = _Row(TRUE, "Deleting", PROGRESSING,
        "It is; the message tells what the deletion waits for.")
    DELETION_POLICY_UNRESOLVED = _Row(TRUE, "DeletionPolicyUnresolved", PERSON,
        "The policy would be inherited from the TerraformCluster, which cannot be found.",
        "Set spec.deletionPolicy of the object to Destroy or Retain.")
    DELETION_PROTECTED = _Row(TRUE, "DeletionProtected", PERSON,
        "spec.deletionProtection is true, set on the object or inherited: nothing is destroyed.",
        "Set spec.deletionProtection of the object to false to let the deletion go on.",
        event=EventReason.DELETION_PROTECTED)
    NOT_DELETING = _Row(FALSE, "NotDeleting", DONE, "It is not.")


class DeletionBlocked(Reason, types=(Type.DELETION_BLOCKED,)):
    """Whether machines or pools hold back the deletion of their cluster."""

    DEPENDENTS_EXIST = _Row(TRUE, "DependentsExist", WAITS,
        "Machines or pools of the cluster exist; the message names them.",
        "If it lasts: look at what keeps the machines and pools from being deleted.", warning=True)
    NOT_BLOCKED = _Row(FALSE, "NotBlocked", DONE, "Nothing holds it back.")


class AutoscalingActive(Reason, types=(Type.AUTOSCALING_ACTIVE,)):
    """Whether an autoscaler of the module decides how many members a pool has."""

    REPLICAS_MANAGED_BY_MODULE = _Row(TRUE, "ReplicasManagedByModule", DONE,
        "It does, within the limits of the MachinePool's annotations.")
    AUTOSCALING_DISABLED = _Row(FALSE, "AutoscalingDisabled", DONE,
        "The MachinePool has no limits for an autoscaler.", warning=False)
    AUTOSCALING_ANNOTATIONS_INVALID = _Row(FALSE, "AutoscalingAnnotationsInvalid", PERSON,
        "The limits of the MachinePool cannot be used; the message tells why.",
        "Correct the annotations of the MachinePool.")
    REPLICAS_MANAGED_EXTERNALLY = _Row(FALSE, "ReplicasManagedExternally", PERSON,
        "Something else manages the replicas of the MachinePool, too.",
        "Remove the annotation cluster.x-k8s.io/replicas-managed-by, or the limits.")


class EndpointAvailable(Reason, types=(Type.ENDPOINT_AVAILABLE,)):
    """Whether the control plane's endpoint is known."""

    ENDPOINT_AVAILABLE = _Row(TRUE, "EndpointAvailable", DONE, "The endpoint is known.")
    WAITING_FOR_ENDPOINT = _Row(FALSE, "WaitingForEndpoint", PERSON,
        "The infrastructure is there, and neither the module nor the user gave an endpoint.",
        "Let the module report one, or set controlPlaneEndpoint of the Cluster.", warning=False)


# fmt: on


def table() -> Iterator[tuple[Type, type[Reason]]]:
    """Every condition type with each class of its reasons, types in their order."""
    for kind in Type:
        for reasons in Reason.__subclasses__():
            if kind in reasons.types:
                yield kind, reasons


_KNOWN: dict[tuple[str, str], Reason] = {
    (kind, reason.value): reason for kind, reasons in table() for reason in reasons
}


def reason_named(kind: str, reason: str) -> Reason | None:
    """The row of a reason as read from an object; None for one of another release or a person."""
    return _KNOWN.get((kind, reason))
