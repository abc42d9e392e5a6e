"""Plans and their targets in a store, as a manager would have left them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from captfctl.cluster.door import Door
from captfctl.embedded.described import scratch_store
from captfctl.embedded.layout import STORE
from captfctl.embedded.plane import install
from captfctl.embedded.store import LOCAL_ADMIN, MANAGER, EmbeddedStore
from captfctl.install.policies import policies
from captfctl.model import keys
from captfctl.model.crds import crds
from captfctl.model.meta import ObjectMeta, OwnerReference
from captfctl.model.plan import (
    PlanReason,
    PlanSummary,
    PlanTarget,
    TerraformPlan,
    TerraformPlanSpec,
)
from captfctl.model.resource import Document
from captfctl.model.resources import (
    TERRAFORM_CLUSTERS,
    TERRAFORM_MACHINE_POOLS,
    TERRAFORM_PLANS,
)
from captfctl.model.terraform import ApplyPolicy
from runner import wire
from tests.support.clock import FakeClock

NAMESPACE = "default"
HASH = f"p2:{'a' * 64}"
HARMLESS = wire.Plan(HASH, create=1, resources=("terraform_data.disk (create)",))
DESTRUCTIVE = wire.Plan(HASH, replace=1, delete=1, resources=("a (replace)", "b (delete)"))


class Site:
    """A store with the rules of an API server, a clock, and who writes what."""

    def __init__(self, store: EmbeddedStore, clock: FakeClock) -> None:
        self.store, self.clock = store, clock
        self.manager: Door = store.door(user=MANAGER)
        self.door: Door = store.door(user=LOCAL_ADMIN)

    def target(
        self,
        name: str = "web",
        *,
        kind: str = "TerraformCluster",
        policy: ApplyPolicy = ApplyPolicy.MANUAL,
        **metadata: Any,
    ) -> Document:
        """An object of that kind, with this policy."""
        clusters = kind == "TerraformCluster"
        resource = TERRAFORM_CLUSTERS if clusters else TERRAFORM_MACHINE_POOLS
        document = {
            "apiVersion": resource.api_version,
            "kind": kind,
            "metadata": {"name": name, "namespace": NAMESPACE, **metadata},
            "spec": {
                "source": {"image": "registry.example.com/a:v1"},
                "identityRef": {"name": "cloud"},
                **({"applyPolicy": policy.value} if clusters else {}),
            },
        }
        return self.manager.create(resource.untyped(), document, NAMESPACE)

    def plan(
        self,
        target: Document,
        name: str = "web-0",
        *,
        reason: PlanReason = PlanReason.MANUAL,
        content: wire.Plan = HARMLESS,
        label: str = "Pending",
        uid: str = "",
        plan_hash: str = HASH,
    ) -> TerraformPlan:
        """A plan of the target; a later one is younger."""
        self.clock.advance(1)
        meta, summary = target["metadata"], PlanSummary.of(content)
        owner = OwnerReference(
            api_version=target["apiVersion"],
            kind=target["kind"],
            name=meta["name"],
            uid=uid or meta["uid"],
            controller=True,
        )
        destructive = keys.TRUE if summary.destructive else keys.FALSE
        plan = TerraformPlan(
            api_version=TERRAFORM_PLANS.api_version,
            kind=TERRAFORM_PLANS.kind,
            metadata=ObjectMeta(
                name=name,
                namespace=NAMESPACE,
                owner_references=[owner],
                labels={keys.PLAN_PHASE: label, keys.DESTRUCTIVE: destructive},
            ),
            spec=TerraformPlanSpec(
                target_ref=PlanTarget(kind=target["kind"], name=meta["name"]),
                plan_hash=plan_hash,
                inputs_hash="i1",
                reason=reason,
                summary=summary,
            ),
        )
        return self.manager.create(TERRAFORM_PLANS, plan)

    def stored(self, name: str = "web-0") -> TerraformPlan:
        return self.manager.get(TERRAFORM_PLANS, name, NAMESPACE)

    def waiting(self, target: Document, plan: str) -> None:
        """The target's status names the plan."""
        resource = next(
            one
            for one in (TERRAFORM_CLUSTERS, TERRAFORM_MACHINE_POOLS)
            if one.kind == target["kind"]
        )
        self.status(resource, target, {"pendingPlanRef": {"name": plan}})

    def status(self, resource: Any, target: Document, status: Document) -> None:
        name = target["metadata"]["name"]
        self.manager.patch(
            resource.untyped(), name, NAMESPACE, {"status": status}, subresource="status"
        )


@contextmanager
def a_site() -> Iterator[Site]:
    """In memory."""
    clock = FakeClock()
    store = scratch_store(clock, (*crds(), *policies(MANAGER["username"])))
    yield Site(store, clock)
    store.close()


@contextmanager
def a_stopped_plane(data: Path) -> Iterator[Site]:
    """What is kept in the data directory of a control plane, to be changed while it is stopped."""
    clock = FakeClock()
    store = EmbeddedStore.open(data / STORE, clock)
    install(store.door())
    yield Site(store, clock)
    store.close()
