"""Who may approve a plan, and who may say what became of one (api.md: Admission)."""

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from captfctl.cluster.errors import Invalid
from captfctl.embedded.described import scratch_store
from captfctl.embedded.store import EmbeddedStore, WriteOptions, merge_patch
from captfctl.install.policies import policies, policies_for_files
from captfctl.model import keys
from captfctl.model.crds import crds
from captfctl.model.resource import Document
from captfctl.model.resources import TERRAFORM_PLANS
from tests.support.clock import FakeClock
from tests.support.plan_admission import (
    ALICE,
    BOB,
    CREATES,
    LABEL,
    MANAGER,
    PATCHES,
    Created,
    Patched,
    approval,
    label,
    plan,
)


class Asked:
    """Requests of users about plans."""

    def __init__(self, store: EmbeddedStore) -> None:
        self._store = store
        self._served = store.registry.find_kind(TERRAFORM_PLANS.api_version, TERRAFORM_PLANS.kind)

    def create(self, user: str, document: Document) -> None:
        self._store.create(self._served, copy.deepcopy(document), "default", self._as(user))

    def patch(self, user: str, patch: Document, subresource: str = "") -> None:
        def change(stored: Document) -> Any:
            return merge_patch(stored, copy.deepcopy(patch))

        self._store.modify(
            self._served, "web-0", "default", change, self._as(user), subresource=subresource
        )

    @staticmethod
    def _as(user: str) -> WriteOptions:
        return WriteOptions(user={"username": user, "groups": ["system:masters"]})


def asked_of(rules: list[Document]) -> Iterator[Asked]:
    store = scratch_store(FakeClock(), (*crds(), *rules))
    yield Asked(store)
    store.close()


@pytest.fixture
def asked() -> Iterator[Asked]:
    yield from asked_of(policies(MANAGER))


def refusal(act: Any, *arguments: Any) -> str:
    with pytest.raises(Invalid) as refused:
        act(*arguments)
    return str(refused.value)


@pytest.mark.parametrize("case", CREATES.values(), ids=CREATES)
def test_a_user_may_or_may_not_create(asked: Asked, case: Created):
    if case.said:
        assert case.said in refusal(asked.create, case.by, case.document)
    else:
        asked.create(case.by, case.document)


@pytest.mark.parametrize("case", PATCHES.values(), ids=PATCHES)
def test_a_user_may_or_may_not_patch(asked: Asked, case: Patched):
    asked.create(MANAGER, plan(phase=case.phase))
    if case.approved_by:
        asked.patch(case.approved_by, approval(case.approved_by))

    if case.said:
        assert case.said in refusal(asked.patch, case.by, case.patch)
    else:
        asked.patch(case.by, case.patch)


def test_everything_that_is_wrong_with_a_request_is_told_at_once(asked: Asked):
    asked.create(MANAGER, plan(phase="Failed"))

    said = refusal(asked.patch, BOB, {**approval(ALICE), **label("Pending")})

    assert f'spec.approvedBy: must be the user name of who approves, "{BOB}", not "{ALICE}"' in said
    assert "spec.approved: the plan is Failed and can no longer be approved" in said
    assert LABEL in said


def test_an_approver_with_a_line_break_is_refused_in_one_line(asked: Asked):
    said = refusal(asked.create, ALICE, plan(approved=True, approvedBy="a\nb"))

    assert 'not "a b"' in said


@pytest.mark.parametrize("user", ["", MANAGER, ALICE])
def test_nobody_changes_the_phase_where_the_manager_is_not_known(user: str):
    for asked in asked_of(policies()):
        asked.create(MANAGER, plan(phase="Pending"))
        assert LABEL in refusal(asked.patch, user, label("Applied"))
        asked.patch(ALICE, approval(ALICE))


def test_a_status_is_written_without_the_label_of_the_phase(asked: Asked):
    asked.create(MANAGER, plan(phase="Pending"))

    asked.patch(ALICE, {"status": {"phase": "Pending"}, **label("Applied")}, "status")

    assert asked._store.door().get(TERRAFORM_PLANS, "web-0", "default").metadata.labels[
        keys.PLAN_PHASE
    ] == ("Pending")


def test_a_plan_from_a_file_keeps_its_approver_and_still_has_to_be_whole():
    for asked in asked_of(policies_for_files()):
        asked.create("whoever reads it", plan(phase="Approved", approved=True, approvedBy=ALICE))
        assert "must name who approves" in refusal(
            asked.create, "whoever reads it", plan("web-1", approved=True)
        )
