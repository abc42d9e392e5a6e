"""Who may do what to a plan, as a table: the embedded API server and a real one are asked the same
(api.md: Admission)."""

from dataclasses import dataclass
from typing import Any, Final

from captfctl.cluster.door import Door
from captfctl.model import keys
from captfctl.model.resources import CRDS, TERRAFORM_PLANS

Document = dict[str, Any]

ALICE: Final = "alice@example.com"
BOB: Final = "bob@example.com"
MANAGER: Final = "the manager"
"""Stands for the user name of the manager, which differs from server to server."""

UNFIT = "a plan of a TerraformMachinePool has the reason ExportsChange"
IMMUTABLE = "is immutable"
FORGED = "spec.approvedBy: must be the user name of who approves"
LABEL = f"metadata.labels[{keys.PLAN_PHASE}]: is the manager's record of what became of the plan"


def plan(name: str = "web-0", *, phase: str = "", **spec: Any) -> Document:
    """A plan as the manager creates it; `phase` is its label."""
    labels = {keys.PLAN_REASON: "Manual"}
    return {
        "apiVersion": TERRAFORM_PLANS.api_version,
        "kind": TERRAFORM_PLANS.kind,
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": {**labels, keys.PLAN_PHASE: phase} if phase else labels,
        },
        "spec": {
            "targetRef": {"kind": "TerraformCluster", "name": "web"},
            "planHash": "p2:abc",
            "inputsHash": "i1",
            "reason": "Manual",
            "summary": {
                "create": 1,
                "update": 0,
                "replace": 0,
                "delete": 0,
                "resources": ["a (create)"],
            },
            **spec,
        },
    }


def allow_any_reason(door: Door) -> None:
    """The kind as it was before its schema tied the reason of a plan to the kind of its target."""
    name = f"{TERRAFORM_PLANS.plural}.{TERRAFORM_PLANS.group}"
    crd = door.get(CRDS.untyped(), name)
    spec = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    rules = spec["x-kubernetes-validations"]
    spec["x-kubernetes-validations"] = [one for one in rules if one["fieldPath"] != ".reason"]
    door.update(CRDS.untyped(), crd)


def approval(by: str) -> Document:
    """The patch with which somebody approves."""
    return {"spec": {"approved": True, "approvedBy": by}}


def label(phase: str | None) -> Document:
    """The patch that sets the label of the phase, or removes it."""
    return {"metadata": {"labels": {keys.PLAN_PHASE: phase}}}


@dataclass(frozen=True, kw_only=True)
class Created:
    """Somebody creates a plan. `said` empty: it is admitted."""

    by: str
    document: Document
    said: str = ""


@dataclass(frozen=True, kw_only=True)
class Patched:
    """Somebody patches a plan of the manager, which has this label, and this approver if any."""

    by: str
    patch: Document
    said: str = ""
    phase: str = "Pending"
    approved_by: str = ""


def _approved(by: str, phase: str = "") -> Document:
    return plan(phase=phase, approved=True, approvedBy=by)


CREATES: Final = {
    "an unapproved plan": Created(by=ALICE, document=plan()),
    "an unapproved plan that is labelled as pending": Created(
        by=ALICE, document=plan(phase="Pending")
    ),
    "an unapproved plan that is labelled as approved": Created(
        by=ALICE, document=plan(phase="Approved"), said=LABEL
    ),
    "a plan with a phase that does not exist": Created(
        by=ALICE, document=plan(phase="Done"), said=LABEL
    ),
    "an approved plan of one's own": Created(by=ALICE, document=_approved(ALICE, "Approved")),
    "an approved plan in another's name": Created(by=BOB, document=_approved(ALICE), said=FORGED),
    "an approved plan in another's name, labelled as pending": Created(
        by=BOB, document=_approved(ALICE, "Pending"), said=FORGED
    ),
    "an approved plan in another's name, by the manager": Created(
        by=MANAGER, document=_approved(ALICE, "Approved"), said=FORGED
    ),
    **{
        f"a plan that ended as {phase}, with its approver": Created(
            by=BOB, document=_approved(ALICE, phase)
        )
        for phase in ("Applied", "Failed", "Superseded")
    },
    "an approved plan without approver": Created(
        by=ALICE, document=plan(approved=True), said="approvedBy must name who approves"
    ),
    "an approver without approval": Created(
        by=ALICE, document=plan(approvedBy=ALICE), said="must not be set without approved: true"
    ),
    **{
        f"a plan of a {kind} for {reason}": Created(
            by=MANAGER,
            document=plan(targetRef={"kind": kind, "name": "web"}, reason=reason),
            said="" if fits else UNFIT,
        )
        for kind, reason, fits in (
            ("TerraformCluster", "Destructive", True),
            ("TerraformCluster", "ExportsChange", False),
            ("TerraformMachinePool", "ExportsChange", True),
            ("TerraformMachinePool", "Manual", False),
            ("TerraformMachinePool", "Destructive", False),
        )
    },
    "any phase, by the manager": Created(by=MANAGER, document=plan(phase="Approved")),
}

PATCHES: Final = {
    "to approve": Patched(by=ALICE, patch=approval(ALICE)),
    "to approve without a label": Patched(by=ALICE, patch=approval(ALICE), phase=""),
    "to approve for somebody else": Patched(by=BOB, patch=approval(ALICE), said=FORGED),
    "to approve for somebody else, by the manager": Patched(
        by=MANAGER, patch=approval(ALICE), said=FORGED
    ),
    "to approve in nobody's name": Patched(
        by=ALICE, patch={"spec": {"approved": True}}, said="approvedBy must name who approves"
    ),
    "to name an approver without approving": Patched(
        by=ALICE,
        patch={"spec": {"approvedBy": ALICE}},
        said="must not be set without approved: true",
    ),
    **{
        f"to approve what is {phase}": Patched(
            by=ALICE,
            patch=approval(ALICE),
            phase=phase,
            said=f"spec.approved: the plan is {phase} and can no longer be approved",
        )
        for phase in ("Applied", "Failed", "Superseded")
    },
    "to approve what is superseded and take the label off": Patched(
        by=ALICE, patch={**approval(ALICE), **label(None)}, phase="Superseded", said=LABEL
    ),
    "to withdraw an approval": Patched(
        by=ALICE,
        patch={"spec": {"approved": None, "approvedBy": None}},
        approved_by=ALICE,
        said="an approval is neither withdrawn nor changed",
    ),
    "to unset an approval": Patched(
        by=ALICE,
        patch={"spec": {"approved": False}},
        approved_by=ALICE,
        said="an approval is neither withdrawn nor changed",
    ),
    "to take over an approval": Patched(
        by=BOB,
        patch={"spec": {"approvedBy": BOB}},
        approved_by=ALICE,
        said="an approval is neither withdrawn nor changed",
    ),
    "to withdraw an approval, by the manager": Patched(
        by=MANAGER,
        patch={"spec": {"approved": None, "approvedBy": None}},
        approved_by=ALICE,
        said="an approval is neither withdrawn nor changed",
    ),
    **{
        f"to change {field}, by {who}": Patched(
            by=who, patch={"spec": {field: value}}, said=f"{field} {IMMUTABLE}"
        )
        for who in (ALICE, MANAGER)
        for field, value in {
            "targetRef": {"name": "db"},
            "planHash": "p2:other",
            "inputsHash": "i2",
            "reason": "Destructive",
            "summary": {"delete": 1},
        }.items()
    },
    "to change the phase": Patched(by=ALICE, patch=label("Applied"), said=LABEL),
    "to remove the phase": Patched(by=ALICE, patch=label(None), phase="Superseded", said=LABEL),
    "to add a phase": Patched(by=ALICE, patch=label("Superseded"), phase="", said=LABEL),
    "to approve and say so in the label": Patched(
        by=ALICE, patch={**approval(ALICE), **label("Approved")}, said=LABEL
    ),
    "to change the phase, by the manager": Patched(by=MANAGER, patch=label("Superseded")),
    "another label": Patched(by=ALICE, patch={"metadata": {"labels": {"team": "a"}}}),
    "a note on an approved plan": Patched(
        by=BOB, patch={"metadata": {"annotations": {"note": "seen"}}}, approved_by=ALICE
    ),
    "a note on a plan that ended": Patched(
        by=BOB, patch={"metadata": {"annotations": {"note": "seen"}}}, phase="Applied"
    ),
}
