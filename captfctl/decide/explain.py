"""What a reason means, for people: the note of the `JobCreated` event
(decision.md: Reasons of decisions)."""

from captfctl.decide.types import Decision, Reason
from captfctl.model.ops import Op

EXPLANATIONS: dict[Reason, str] = {
    Reason.JOB_ACTIVE: "a Job of this object is still running",
    Reason.DELETION_RETAINED: "the object is being deleted and its infrastructure is kept",
    Reason.RESTORE_REQUESTED: "a restore of the Terraform state was requested",
    Reason.DELETION_HELD: "the deletion waits because the Terraform state cannot be trusted",
    Reason.DELETING_WITHOUT_STATE: "the object is being deleted and there is nothing to destroy",
    Reason.DELETING_WITHOUT_RESOURCES: "the object is being deleted and its state has no resources",
    Reason.DELETING: "the object is being deleted",
    Reason.NO_STATE: "nothing has been applied yet",
    Reason.STATE_WITHOUT_INPUTS_HASH: "no apply of this state has succeeded yet",
    Reason.INPUTS_CHANGED: "the inputs differ from the applied ones",
    Reason.LAST_APPLY_FAILED: "the last apply did not succeed",
    Reason.DRIFT_REMEDIATION: "drift was found and is to be corrected",
    Reason.PLAN_AWAITING_APPROVAL: "a plan waits for approval",
    Reason.DESTRUCTIVE_PLAN_BLOCKED: "a plan that destroys something waits for approval",
    Reason.REFRESH_AFTER_APPLY: "the infrastructure is read again after the apply",
    Reason.MEMBERSHIP_CONVERGING: "the members do not match the wanted number yet",
    Reason.HEALTH_PENDING: "the infrastructure is still coming up",
    Reason.MEMBERSHIP_REFRESH_DUE: "the members are due to be read again",
    Reason.HEALTH_CHECK_DUE: "the health is due to be read again",
    Reason.DRIFT_DUE: "the drift check is due",
    Reason.UP_TO_DATE: "nothing is due",
}

PLANNING = "planning for approval (applyPolicy Manual): "


def explain(decision: Decision) -> str:
    """The reason in words; for a plan Job and an approved apply also what the plan is about.

    What only the caller knows (a fallback image) it adds itself.
    """
    text = explain_reason(decision.reason)
    if decision.op is Op.PLAN:
        return PLANNING + text
    if decision.op is Op.APPLY and decision.plan:
        return f"{text}; applies the approved TerraformPlan {decision.plan}"
    return text


def explain_reason(reason: str) -> str:
    """Words for a reason, also one read from an object; one that is not known stays as it is."""
    try:
        known = Reason(reason)
    except ValueError:
        return reason
    if known.backing_off:
        due = Reason(known.value.removesuffix("Backoff"))
        return f"{EXPLANATIONS[due]}; the last attempt failed and the next one waits"
    return EXPLANATIONS[known]
