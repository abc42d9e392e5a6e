"""Approving a plan: what is checked, in which order, and what is written (plans.md: Approving)."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from captfctl.approvals import Evidence, Outcome, Refused, Request, Result, Who, approve
from captfctl.approvals.checks import warnings
from captfctl.approvals.evidence import read
from captfctl.approvals.refused import Rule
from captfctl.cluster.errors import Forbidden, Invalid, Unavailable
from captfctl.model import keys, names
from captfctl.model.core import Job
from captfctl.model.meta import ObjectMeta
from captfctl.model.plan import PlanReason
from captfctl.model.resource import Document
from captfctl.model.resources import JOBS, TERRAFORM_CLUSTERS, TERRAFORM_PLANS
from captfctl.model.terraform import ApplyPolicy
from tests.approvals.plans import DESTRUCTIVE, HASH, NAMESPACE, Site, a_site
from tests.support.faults import HookedDoor
from tests.support.plan_admission import allow_any_reason

ADMIN = Who("local-admin")
POOL = "TerraformMachinePool"


@pytest.fixture
def site() -> Iterator[Site]:
    with a_site() as site:
        yield site


class Person:
    """What somebody sees, and answers; None: there is nobody."""

    def __init__(self, answer: bool | None = None) -> None:
        self.answer = answer
        self.saw: list[str] = []
        self.asked: list[bool] = []
        self.before_answer: Callable[[], object] = lambda: None

    def show(self, found: Evidence) -> None:
        self.saw.append(found.plan.metadata.name)

    def confirm(self, found: Evidence, *, by_name: bool) -> bool | None:
        self.asked.append(by_name)
        self.before_answer()
        return self.answer


def ask(
    site: Site, person: Person | None = None, who: Who = ADMIN, door: Any = None, **request: Any
) -> Outcome:
    asked = {"plan": "web-0", **request}
    if "name" in request:
        asked = {"kind": "TerraformCluster", **request}
    return approve(
        door or site.door, Request(namespace=NAMESPACE, **asked), who, person or Person()
    )


def refusal(site: Site, *arguments: Any, **request: Any) -> Refused:
    with pytest.raises(Refused) as refused:
        ask(site, *arguments, **request)
    return refused.value


def approved(site: Site, name: str = "web-0") -> str:
    """Who approved it; empty: nobody."""
    spec = site.stored(name).spec
    assert spec.approved == bool(spec.approved_by)
    return spec.approved_by


def test_an_approval_is_written_in_the_users_name_and_nothing_else_is(site: Site):
    before = site.plan(site.target())

    done = ask(site, yes=True)

    after = site.stored()
    assert done.result is Result.APPROVED
    assert approved(site) == "local-admin"
    assert after.metadata.labels == before.metadata.labels
    assert after.status == before.status
    after.spec.approved, after.spec.approved_by = False, ""
    assert after.spec == before.spec


def test_the_live_plan_of_a_target_is_approved_whatever_its_status_names(site: Site):
    target = site.target()
    site.plan(target, "web-0", label="Superseded")
    site.plan(target, "web-1")
    site.plan(target, "web-9", uid="that of an earlier object")
    site.waiting(target, "web-0")

    ask(site, name="web", yes=True)

    assert approved(site, "web-1") == "local-admin"
    assert approved(site, "web-9") == ""


def test_the_plan_is_shown_before_anything_is_written(site: Site):
    site.plan(site.target())
    person = Person(True)
    person.before_answer = lambda: person.saw.append(approved(site))

    ask(site, person)

    assert person.saw == ["web-0", ""]


# The checks, in their order: each case breaks its own rule and every later one that it can.


def nothing(_: Site) -> None:
    pass


def another_plan(site: Site) -> None:
    site.plan(site.target(), "web-1")


def foreign_hash(site: Site) -> None:
    site.plan(site.target(), plan_hash="p1:abc", label="Applied")


def reason_of_a_pool(site: Site) -> None:
    allow_any_reason(site.manager)
    site.plan(site.target(), reason=PlanReason.EXPORTS_CHANGE, label="Applied")


def reason_of_a_cluster(site: Site) -> None:
    allow_any_reason(site.manager)
    site.plan(site.target(kind=POOL), reason=PlanReason.MANUAL)


def ended(site: Site) -> None:
    site.plan(site.target(policy=ApplyPolicy.AUTOMATIC), label="Failed")


def target_gone(site: Site) -> None:
    site.plan(site.target("other") | {"metadata": {"name": "web", "uid": "u"}})


def target_of_the_same_name(site: Site) -> None:
    site.plan(site.target(), uid="that of an earlier object")


def target_deleting(site: Site) -> None:
    target = site.target(policy=ApplyPolicy.AUTOMATIC, finalizers=["example.com/keep"])
    site.plan(target)
    site.plan(target, "web-1")
    site.manager.delete(TERRAFORM_CLUSTERS, "web", NAMESPACE)


def newer_plan(site: Site) -> None:
    target = site.target(policy=ApplyPolicy.AUTOMATIC)
    site.plan(target)
    site.plan(target, "web-1")


def manual_plan_of_an_automatic_cluster(site: Site) -> None:
    site.plan(site.target(policy=ApplyPolicy.AUTOMATIC))


def destructive_plan_of_a_manual_cluster(site: Site) -> None:
    site.plan(site.target(), reason=PlanReason.DESTRUCTIVE)


def waiting(site: Site) -> None:
    site.plan(site.target(), content=DESTRUCTIVE)


def harmless(site: Site) -> None:
    site.plan(site.target())


NOBODY = Who(problem="users cannot ask who they are")
WRONG = {"expect_hash": "p2:other", "by": "bob"}

REFUSALS: dict[str, tuple[Rule, str, Callable[[Site], None], dict[str, Any]]] = {
    "no such plan": (Rule.NOT_FOUND, "no TerraformPlan web-0", nothing, {"who": NOBODY}),
    "no such target": (Rule.NOT_FOUND, "no TerraformCluster default/web", nothing, {"name": "web"}),
    "a target without plans": (
        Rule.NOT_FOUND,
        "it has no plans at all",
        lambda site: site.target(),
        {"name": "web"},
    ),
    "a target whose plans have ended": (
        Rule.NOT_FOUND,
        "1 have ended, the newest as Failed",
        ended,
        {"name": "web"},
    ),
    "a hash of another release": (Rule.MALFORMED, "does not begin with p2:", foreign_hash, {}),
    "a pool's reason on a cluster": (Rule.MALFORMED, "has no plans", reason_of_a_pool, {}),
    "a cluster's reason on a pool": (Rule.MALFORMED, "has no plans", reason_of_a_cluster, {}),
    "a plan that has ended": (Rule.ENDED, "is Failed", ended, WRONG),
    "a target that is gone": (Rule.TARGET_GONE, "does not exist", target_gone, WRONG),
    "a target that is another object": (
        Rule.TARGET_GONE,
        "not a plan of this",
        target_of_the_same_name,
        WRONG,
    ),
    "a target that is being deleted": (
        Rule.TARGET_DELETING,
        "being deleted",
        target_deleting,
        WRONG,
    ),
    "a newer plan": (Rule.REPLACED, "superseded by web-1", newer_plan, WRONG),
    "a manual plan of an automatic cluster": (
        Rule.POLICY,
        "is now Automatic",
        manual_plan_of_an_automatic_cluster,
        WRONG,
    ),
    "a destructive plan of a manual cluster": (
        Rule.POLICY,
        "is now Manual",
        destructive_plan_of_a_manual_cluster,
        WRONG,
    ),
    "another hash than expected": (
        Rule.OTHER_HASH,
        f"it is {HASH}, not p2:other",
        waiting,
        {**WRONG, "who": NOBODY},
    ),
    "a user whom nobody knows": (
        Rule.USER_UNKNOWN,
        "cannot ask who they are",
        waiting,
        {"by": "bob", "who": NOBODY},
    ),
    "a user with too long a name": (
        Rule.USER_UNKNOWN,
        "513 characters",
        waiting,
        {"by": "bob", "who": Who("x" * 513)},
    ),
    "another user": (Rule.OTHER_USER, "you are local-admin", waiting, {"by": "bob"}),
    "something destructive, only --yes": (
        Rule.DESTRUCTIVE,
        "deletes or replaces",
        waiting,
        {"yes": True},
    ),
    "something destructive, and nobody to ask": (
        Rule.DESTRUCTIVE,
        "deletes or replaces",
        waiting,
        {},
    ),
    "something destructive that is not confirmed": (
        Rule.DESTRUCTIVE,
        "not confirmed",
        waiting,
        {"person": Person(False)},
    ),
    "nobody to ask": (Rule.UNCONFIRMED, "no terminal", harmless, {}),
    "nobody to ask about what may be destroyed": (
        Rule.UNCONFIRMED,
        "no terminal",
        waiting,
        {"allow_destructive": True},
    ),
    "a plan that is not confirmed": (
        Rule.UNCONFIRMED,
        "not confirmed",
        harmless,
        {"person": Person(False)},
    ),
}


@pytest.mark.parametrize(("rule", "said", "given", "request_"), REFUSALS.values(), ids=REFUSALS)
def test_a_plan_is_not_approved_with(
    site: Site, rule: Rule, said: str, given: Callable[[Site], None], request_: dict[str, Any]
):
    given(site)

    refused = refusal(site, **request_)

    assert refused.rule is rule, refused
    assert said in str(refused)
    assert refused.exit_code == 1
    plans = site.manager.list(TERRAFORM_PLANS, NAMESPACE).items
    assert not any(plan.spec.approved for plan in plans)


def test_a_plan_that_has_ended_names_the_current_one(site: Site):
    target = site.target()
    site.plan(target, label="Superseded")
    site.plan(target, "web-1")

    assert "web-1" in refusal(site).do


def test_a_misspelled_plan_is_answered_with_the_one_that_was_meant(site: Site):
    site.plan(site.target(), "web-911bde90b1")

    assert refusal(site, plan="web-911bde90b2").do == "did you mean web-911bde90b1?"
    assert "--target terraformcluster/web" in refusal(site, plan="web").do
    assert "get terraformplans" in refusal(site, plan="quite-another").do


def test_a_plan_that_is_approved_is_left_as_it_is(site: Site):
    site.plan(site.target(policy=ApplyPolicy.AUTOMATIC))
    site.store.door(user={"username": "alice"}).patch(
        TERRAFORM_PLANS, "web-0", NAMESPACE, {"spec": {"approved": True, "approvedBy": "alice"}}
    )
    version = site.stored().metadata.resource_version

    done = ask(site, who=NOBODY)

    assert done.result is Result.ALREADY_APPROVED
    assert done.found.plan.spec.approved_by == "alice"
    assert site.stored().metadata.resource_version == version


@pytest.mark.parametrize("content", [DESTRUCTIVE, None], ids=["destructive", "harmless"])
def test_a_dry_run_asks_nobody_and_writes_nothing(site: Site, content):
    site.plan(site.target(), **({"content": content} if content else {}))
    person = Person(True)

    done = ask(site, person, dry_run=True)

    assert done.result is Result.DRY_RUN
    assert done.patch == {"spec": {"approved": True, "approvedBy": "local-admin"}}
    assert (person.saw, person.asked) == (["web-0"], [])
    assert approved(site) == ""


def test_only_what_is_destructive_has_to_be_confirmed_by_name(site: Site):
    site.plan(site.target(), content=DESTRUCTIVE)
    harmless_target = site.target("db")
    site.plan(harmless_target, "db-0")
    person = Person(True)

    ask(site, person)
    ask(site, person, plan="db-0")

    assert person.asked == [True, False]
    assert approved(site) == approved(site, "db-0") == "local-admin"


def test_counts_decide_what_is_destructive_not_the_label(site: Site):
    site.plan(site.target(), content=DESTRUCTIVE)
    site.manager.patch(
        TERRAFORM_PLANS, "web-0", NAMESPACE, {"metadata": {"labels": {keys.DESTRUCTIVE: "false"}}}
    )

    refused = refusal(site, yes=True)

    assert refused.rule is Rule.DESTRUCTIVE
    assert "captf.io/destructive=false is wrong" in " ".join(told(site))


def test_a_pools_plan_is_approved_whatever_policy_its_cluster_has(site: Site):
    pool = site.target(kind=POOL)
    site.plan(pool, reason=PlanReason.EXPORTS_CHANGE, content=DESTRUCTIVE)

    ask(site, kind=POOL, name="web", plan="", yes=True, allow_destructive=True)

    assert approved(site) == "local-admin"


# What a server answers to the write.


class Between:
    """A door through which the first patches go to `instead`."""

    def __init__(self, site: Site, *instead: Callable[[], object]) -> None:
        self._site, self._instead = site, list(instead)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._site.door, name)

    def patch(self, *arguments: Any, **options: Any) -> Any:
        if self._instead:
            self._instead.pop(0)()
        return self._site.door.patch(*arguments, **options)


def touched(site: Site) -> None:
    note = {"metadata": {"annotations": {"note": site.clock.now().isoformat()}}}
    site.clock.advance(1)
    site.manager.patch(TERRAFORM_PLANS, "web-0", NAMESPACE, note)


def superseded(site: Site) -> None:
    label = {"metadata": {"labels": {keys.PLAN_PHASE: "Superseded"}}}
    site.manager.patch(TERRAFORM_PLANS, "web-0", NAMESPACE, label)


def approved_by_alice(site: Site) -> None:
    site.store.door(user={"username": "alice"}).patch(
        TERRAFORM_PLANS, "web-0", NAMESPACE, {"spec": {"approved": True, "approvedBy": "alice"}}
    )


def test_a_plan_that_changes_meanwhile_is_read_again_and_approved(site: Site):
    site.plan(site.target())
    person = Person(True)

    done = ask(site, person, door=Between(site, lambda: touched(site)))

    assert done.result is Result.APPROVED
    assert approved(site) == "local-admin"
    assert len(person.asked) == 1


def test_a_plan_that_changes_twice_meanwhile_is_refused(site: Site):
    site.plan(site.target())

    def change() -> None:
        touched(site)

    refused = refusal(site, yes=True, door=Between(site, change, change))

    assert refused.rule is Rule.NOT_WRITTEN
    assert "changed by somebody else" in str(refused)


def test_a_plan_that_is_superseded_meanwhile_is_refused_as_such(site: Site):
    site.plan(site.target())

    refused = refusal(site, yes=True, door=Between(site, lambda: superseded(site)))

    assert refused.rule is Rule.ENDED
    assert approved(site) == ""


def test_a_plan_that_somebody_else_approves_meanwhile_is_approved_already(site: Site):
    site.plan(site.target())

    done = ask(site, yes=True, door=Between(site, lambda: approved_by_alice(site)))

    assert done.result is Result.ALREADY_APPROVED
    assert approved(site) == "alice"


@pytest.mark.parametrize(
    ("error", "do"),
    [
        (Forbidden('user "bob" cannot patch'), "captf-plan-approver-role"),
        (Invalid("a policy of the installation wants two people"), ""),
    ],
)
def test_what_the_server_refuses_is_told_in_its_words(site: Site, error: Exception, do: str):
    site.plan(site.target())

    def refuse() -> None:
        raise error

    refused = refusal(site, yes=True, door=Between(site, refuse))

    assert refused.rule is Rule.NOT_WRITTEN
    assert str(error) in str(refused)
    assert do in refused.do


def test_a_write_whose_outcome_is_unknown_is_no_refusal(site: Site):
    site.plan(site.target())

    def lost() -> None:
        raise Unavailable("the connection was lost", outcome_unknown=True)

    with pytest.raises(Unavailable) as lost_answer:
        ask(site, yes=True, door=Between(site, lost))
    assert "run the same command again" in lost_answer.value.do


def test_an_approval_in_another_name_is_refused_by_the_server_itself(site: Site):
    site.plan(site.target())

    refused = refusal(site, who=Who("alice"), yes=True)

    assert refused.rule is Rule.NOT_WRITTEN
    assert "must be the user name of who approves" in str(refused)
    assert approved(site) == ""


# What does not stand in the way.


def told(site: Site, door: Any = None) -> list[str]:
    return warnings(read(door or site.door, Request(namespace=NAMESPACE, plan="web-0"), ADMIN))


def test_a_target_that_waits_for_this_plan_is_worth_no_warning(site: Site):
    target = site.target()
    site.plan(target)
    site.waiting(target, "web-0")

    assert told(site) == []


@pytest.mark.parametrize(
    ("metadata", "status", "said"),
    [
        ({"annotations": {keys.PAUSED: ""}}, {}, "is paused"),
        ({}, {"conditions": [("Paused", "True", "Paused")]}, "is paused"),
        ({}, {"pendingPlanRef": {"name": "web-7"}}, "names web-7 as waiting"),
        ({}, {"pendingPlanRef": None}, "names no plan as waiting"),
        ({}, {"conditions": [("ApplyJobSucceeded", "False", "ApplyFailed")]}, "backoff"),
    ],
)
def test_a_warning_tells_that(site: Site, metadata: Document, status: Document, said: str):
    target = site.target(**metadata)
    site.plan(target)
    conditions = [
        {
            "type": kind,
            "status": value,
            "reason": reason,
            "message": "",
            "lastTransitionTime": "2026-09-25T12:00:00Z",
        }
        for kind, value, reason in status.get("conditions", ())
    ]
    whole = {"pendingPlanRef": {"name": "web-0"}, **status, "conditions": conditions}
    site.status(TERRAFORM_CLUSTERS, target, whole)

    (warning,) = told(site)

    assert said in warning
    ask(site, yes=True)
    assert approved(site)


class Approver:
    """A door of somebody who may read and patch plans, and nothing else."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def __getattr__(self, name: str) -> Any:
        def request(resource: Any, *arguments: Any, **options: Any) -> Any:
            if resource.name != TERRAFORM_PLANS.name:
                raise Forbidden(f"may not {name} {resource.name}")
            return getattr(self._site.door, name)(resource, *arguments, **options)

        return request


@pytest.mark.parametrize("request_", [{"plan": "web-1"}, {"plan": "", "name": "web"}])
def test_the_right_to_approve_is_enough(site: Site, request_: dict[str, Any]):
    target = site.target()
    site.plan(target, "web-0", uid="that of an earlier object")
    site.plan(target, "web-1")

    done = ask(site, yes=True, door=Approver(site), **request_)

    assert approved(site, "web-1") == "local-admin"
    assert "you may not read the TerraformCluster" in " ".join(warnings(done.found))


def test_the_job_that_made_the_plan_is_found_by_the_plans_name(site: Site):
    job = "captf-c-web-plan-a1-abc123"
    name = names.plan("web", job, HASH)
    labels = {keys.OWNER_KIND: "TerraformCluster", keys.OWNER_NAME: "web"}
    site.plan(site.target(), name)
    for made in (job, "captf-c-web-plan-a1-fff000"):
        site.manager.create(
            JOBS,
            Job(
                metadata=ObjectMeta(name=made, namespace=NAMESPACE, labels=labels),
                spec={
                    "template": {
                        "spec": {
                            "restartPolicy": "Never",
                            "containers": [{"name": "a", "image": "a"}],
                        }
                    }
                },
            ),
        )

    found = read(site.door, Request(namespace=NAMESPACE, plan=name), ADMIN)

    assert found.job == job
    assert read(Approver(site), Request(namespace=NAMESPACE, plan=name), ADMIN).job == ""


def test_of_many_plans_only_the_one_that_is_asked_for_is_read_whole(site: Site):
    """Each may have a long list of resources."""
    target = site.target()
    for number in range(5):
        other = site.target(f"other-{number}")
        site.plan(other, f"other-{number}")
        site.plan(target, f"ended-{number}", label="Superseded")
    site.plan(target, "web-9")
    whole: list[str] = []

    def count(verb: str, resource: Any) -> None:
        if resource.plural == TERRAFORM_PLANS.plural and not resource.partial:
            whole.append(verb)

    door = HookedDoor(site.door, before=count)
    found = read(door, Request(namespace=NAMESPACE, kind="TerraformCluster", name="web"), ADMIN)

    assert found.plan.metadata.name == "web-9"
    assert whole == ["get"]


def test_a_target_whose_plans_have_all_ended_is_told_how_the_newest_did(site: Site):
    target = site.target()
    site.plan(target, "web-0", label="Failed")
    site.plan(target, "web-1", label="Superseded")

    refused = refusal(site, plan="", name="web")

    assert refused.rule is Rule.NOT_FOUND
    assert refused.why == "2 have ended, the newest as Superseded"


def test_who_may_not_read_the_target_never_approves_a_plan_of_its_namesake(site: Site):
    """That of the earlier object still waits; the newest plan is of the later one, and ended."""
    target = site.target()
    site.plan(target, "web-0", uid="that of an earlier object")
    site.plan(target, "web-1", label="Superseded")

    refused = refusal(site, door=Approver(site), plan="", name="web", yes=True)

    assert refused.rule is Rule.NOT_FOUND
