"""What the state says, and what the inputs are made of (state.md: Verdicts on a state;
reconcile.md: Inputs and their gates)."""

import contextlib
import gzip
import json
from dataclasses import replace
from typing import Any

import pytest

from captfctl.cluster.errors import Unavailable
from captfctl.model import keys, names
from captfctl.model.core import ConfigMap, Secret
from captfctl.model.kinds import Role
from captfctl.model.meta import ObjectMeta
from captfctl.model.owner import API_VERSION
from captfctl.model.resources import CONFIG_MAPS, JOBS, SECRETS, TERRAFORM_CLUSTERS
from captfctl.model.terraform import NameRef, VariableFormat, VariablesSource
from captfctl.terraform.contract.variables_schema import VariableSchema
from tests.support.cluster_world import IMAGE, NAME, NAMESPACE, World, variables
from tests.support.doors import Overridden
from tests.support.fake_runner import OUTPUTS
from tests.support.faults import HookedDoor


def state_secret(world: World) -> Secret:
    found = world.secret(names.state_secret(world.owner.suffix))
    assert found is not None
    return found


def drop_state(world: World) -> None:
    name = names.state_secret(world.owner.suffix)
    world.door.patch(SECRETS, name, NAMESPACE, {"metadata": {"finalizers": None}})
    world.door.delete(SECRETS, name, NAMESPACE)


def write_payload(world: World, payload: bytes) -> None:
    secret = state_secret(world)
    secret.data[keys.TFSTATE] = payload
    world.door.update(SECRETS, secret)


def test_a_state_that_was_there_and_is_gone_is_never_followed_by_an_apply(ready: World):
    drop_state(ready)
    assert ready.settle(3).requeue_after == 60
    assert ready.reason("StateReadable") == "False/StateLost"
    assert ready.running() == []
    assert ready.events.warnings().count("StateLost") == 1


def test_the_records_alone_tell_that_it_was_applied(ready: World):
    drop_state(ready)
    obj = ready.obj
    obj.status.initialization = None
    ready.door.update(TERRAFORM_CLUSTERS, obj, subresource="status")
    ready.run()
    assert ready.reason("StateReadable") == "False/StateLost"


def packed(document: str) -> bytes:
    return gzip.compress(document.encode(), mtime=0)


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        pytest.param(b"not gzip", "StateCorrupt", id="not gzip"),
        pytest.param(packed("{"), "StateCorrupt", id="not JSON"),
        pytest.param(packed('{"version": 3}'), "StateCorrupt", id="version 3"),
        pytest.param(packed('{"encryption_version": "v0"}'), "StateEncrypted", id="encrypted"),
    ],
)
def test_an_unreadable_state_holds_everything(ready: World, payload: bytes, reason: str):
    write_payload(ready, payload)
    ready.edit(variables('{"region":"eu-2"}'))
    assert ready.settle(2).requeue_after == 60
    assert ready.reason("StateReadable") == f"False/{reason}"
    assert ready.running() == []
    assert ready.events.warnings().count("StateUnreadable") == 1


def test_a_missing_chunk_is_inconsistent(ready: World):
    base = state_secret(ready)
    meta = ObjectMeta(
        name=names.state_secret(ready.owner.suffix, 2),
        namespace=NAMESPACE,
        labels=dict(base.metadata.labels),
    )
    ready.create(SECRETS, Secret(metadata=meta, data=dict(base.data)))
    ready.run()
    assert ready.reason("StateReadable") == "False/StateInconsistent"


def test_an_api_error_is_no_verdict(ready: World):
    def broken(*_, **__):
        raise Unavailable("not now")

    before = ready.condition("StateReadable")
    with pytest.raises(Unavailable):
        ready.run(
            ready.env(Overridden(ready.writes, get={"secrets": broken}, list={"secrets": broken}))
        )
    assert ready.condition("StateReadable") == before


def test_the_state_is_stamped_with_the_hash_of_what_was_applied(world: World):
    job = world.apply()
    secret = state_secret(world)
    applied = job.metadata.annotations[keys.INPUTS_HASH]
    assert secret.metadata.annotations[keys.INPUTS_HASH] == applied
    assert keys.STATE_PROTECTION in secret.metadata.finalizers
    assert [ref.uid for ref in secret.metadata.owner_references] == [world.obj.metadata.uid]
    assert world.events.reasons.count("StateAdopted") == 1
    assert world.obj.status.observed_state_serial == 1


def test_a_state_without_a_hash_is_applied_again(ready: World):
    ready.door.patch(
        SECRETS,
        names.state_secret(ready.owner.suffix),
        NAMESPACE,
        {"metadata": {"annotations": {keys.INPUTS_HASH: None}}},
    )
    for job in ready.jobs():  # no run tells any more what this state is
        ready.door.delete(JOBS, job.metadata.name, NAMESPACE)
    ready.run()
    assert ready.job_ops() == ["apply"]
    assert ("apply", "StateWithoutInputsHash") in ready.metrics.decisions


def test_a_foreign_lock_is_shown_and_the_decided_job_starts_all_the_same(ready: World):
    (job,) = ready.jobs()
    ready.runner.lock(job, who="alice@workstation")
    ready.edit(variables('{"region":"eu-2"}'))
    ready.run()
    assert ready.reason("StateReadable") == "False/StateLocked"
    assert "alice@workstation" in ready.condition("StateReadable").message
    assert len(ready.running()) == 1
    assert "--force-unlock" not in " ".join(_arguments(ready))
    assert ready.events.warnings() == ["StateLocked"]


def test_a_lock_of_our_own_dead_pod_is_removed_by_the_next_job(ready: World):
    (job,) = ready.jobs()
    ready.runner.lock(job)
    ready.edit(variables('{"region":"eu-2"}'))
    ready.run()
    assert ready.reason("StateReadable") == "True/StateRead"
    assert f"--force-unlock=lock-of-{job.metadata.name}" in _arguments(ready)
    assert ready.events.reasons.count("ForceUnlocked") == 1


def _arguments(world: World) -> list[str]:
    (container,) = world.active_job().spec.template.spec.containers
    return container.args


def test_a_persisting_foreign_lock_costs_no_write(ready: World):
    (job,) = ready.jobs()
    ready.runner.lock(job, who="alice@workstation")
    ready.run()
    ready.writes.forget()
    ready.advance(minutes=1)
    ready.settle(2)
    assert ready.writes.seen == []


def test_missing_and_invalid_outputs_are_all_named(world: World):
    broken = {**OUTPUTS, "control_plane_endpoint": {"host": "a"}}
    del broken["health"]
    world.settle(2)
    world.runner.succeed(world.active_job(), outputs=broken)
    world.settle()
    assert world.reason("OutputsValid") == "False/OutputsMissing"
    message = world.condition("OutputsValid").message
    assert "health" in message
    assert "control_plane_endpoint" in message
    assert world.reason("InfrastructureHealthy") == "Unknown/HealthUnknown"
    assert not world.obj.status.initialization
    assert world.events.warnings().count("OutputsInvalid") == 1


def test_unhealthy_infrastructure_is_not_ready(ready: World):
    ready.advance(hours=1)
    ready.run()
    degraded = {"state": "degraded", "healthy": False, "message": "m", "reasons": ["a", "b"]}
    ready.runner.succeed(ready.running()[0], outputs={**OUTPUTS, "health": degraded})
    ready.settle()
    assert ready.reason("InfrastructureHealthy") == "False/InstanceDegraded"
    assert ready.condition("InfrastructureHealthy").message == "m; reasons: a, b"
    assert ready.reason("Ready") == "False/NotReady"
    assert "InstanceUnhealthy" in ready.events.warnings()


def test_large_exports_are_not_published_and_said_once(world: World):
    world.apply(outputs={**OUTPUTS, "exports": {"x": "y" * 65_536}})
    world.settle(3)
    assert bytes(world.obj.status.exports) in (b"", b"null")
    assert world.events.warnings().count("ExportsNotPublished") == 1
    assert world.reason("Ready") == "True/Ready"


def test_large_integers_in_exports_survive_unchanged(world: World):
    world.apply(outputs={**OUTPUTS, "exports": {"n": 12345678901234567890123}})
    assert bytes(world.obj.status.exports) == b'{"n":12345678901234567890123}'
    world.writes.forget()
    world.settle(2)
    assert world.writes.seen == []


def test_a_cluster_without_an_endpoint_is_ready_but_says_so(world: World):
    world.apply(outputs={**OUTPUTS, "control_plane_endpoint": None})
    assert world.reason("EndpointAvailable") == "False/WaitingForEndpoint"
    assert world.reason("Ready") == "True/Ready"


def sources(*found: VariablesSource):
    return lambda obj: setattr(obj.spec, "variables_from", list(found))


def from_secret(name: str, **more) -> VariablesSource:
    return VariablesSource(secret_ref=NameRef(name=name), **more)


def from_map(name: str, **more) -> VariablesSource:
    return VariablesSource(config_map_ref=NameRef(name=name), **more)


LABELLED = {keys.VARIABLES: "true"}


def tfvars(world: World) -> dict:
    secret = world.secret(names.run_secret(world.active_job().metadata.name))
    return json.loads(secret.data["terraform.tfvars.json"])


def test_variables_come_from_labelled_sources_inline_last(world: World):
    world.create(
        CONFIG_MAPS,
        ConfigMap(
            metadata=ObjectMeta(name="base", namespace=NAMESPACE, labels=LABELLED),
            data={"region": "map", "size": "[1,2]"},
        ),
    )
    world.create(
        SECRETS,
        Secret(
            metadata=ObjectMeta(name="vars", namespace=NAMESPACE, labels=LABELLED),
            data={"password": b"hunter2"},
        ),
    )
    world.edit(sources(from_map("base"), from_secret("vars"), from_map("gone", optional=True)))
    world.settle(2)
    values = tfvars(world)
    assert (values["region"], values["size"], values["password"]) == ("eu-1", "[1,2]", "hunter2")


def test_a_source_in_json_keeps_its_types(world: World):
    source = ConfigMap(
        metadata=ObjectMeta(name="base", namespace=NAMESPACE, labels=LABELLED),
        data={"size": "[1,2]"},
    )
    world.create(CONFIG_MAPS, source)
    world.edit(sources(from_map("base", format=VariableFormat.JSON)))
    world.settle(2)
    assert tfvars(world)["size"] == [1, 2]


def test_a_missing_or_unlabelled_source_closes_the_gate(world: World):
    world.edit(sources(from_map("base")))
    world.run()
    assert world.run().requeue_after == 30
    assert world.reason("DependenciesReady") == "False/VariablesSourceNotFound"
    assert "spec.variablesFrom[0]" in world.condition("DependenciesReady").message
    unlabelled = ConfigMap(metadata=ObjectMeta(name="base", namespace=NAMESPACE))
    world.create(CONFIG_MAPS, unlabelled)
    world.run()
    assert "label" in world.condition("DependenciesReady").message
    assert world.jobs() == []


def test_a_changed_source_is_applied(ready: World):
    source = ConfigMap(
        metadata=ObjectMeta(name="base", namespace=NAMESPACE, labels=LABELLED), data={"n": "1"}
    )
    ready.create(CONFIG_MAPS, source)
    ready.edit(sources(from_map("base")))
    ready.settle(2)
    ready.runner.succeed(ready.active_job())
    ready.settle(2)
    assert ready.running() == []
    ready.door.patch(CONFIG_MAPS, "base", NAMESPACE, {"data": {"n": "2"}})
    ready.run()
    assert tfvars(ready)["n"] == "2"


def test_a_value_is_never_in_a_message(world: World):
    bad = Secret(
        metadata=ObjectMeta(name="vars", namespace=NAMESPACE, labels=LABELLED),
        data={"password": b"\xff\xfehunter2"},
    )
    world.create(SECRETS, bad)
    world.edit(sources(from_secret("vars")))
    world.settle(2)
    assert world.reason("DependenciesReady") == "False/VariablesInvalid"
    assert "hunter2" not in world.condition("DependenciesReady").message


def test_variables_that_a_known_module_would_refuse_close_the_gate_until_it_declares_them(
    world: World,
):
    declared = {"regions": VariableSchema(), "owner": VariableSchema()}
    asked = []

    def schema_of(image, role):
        asked.append((image, role))
        return VariableSchema(properties=declared, required=("owner",), additional=False)

    env = replace(world.env(), schema_of=schema_of)
    world.run(env)
    assert world.run(env).requeue_after == 30
    assert world.reason("DependenciesReady") == "False/VariablesInvalid"
    message = world.condition("DependenciesReady").message
    assert (
        'variable "region" is not declared by the module image: did you mean "regions"?' in message
    )
    assert 'variable "owner" is required' in message
    assert "eu-1" not in message
    assert world.jobs() == []
    assert set(asked) == {(IMAGE, Role.CLUSTER)}

    declared["region"] = VariableSchema()
    world.edit(variables('{"region": "eu-1", "owner": "us"}'))
    world.run(env)
    assert world.job_ops() == ["apply"]


def test_a_deletion_does_not_wait_for_variables_that_a_module_would_refuse(ready: World):
    closed = VariableSchema(additional=False)
    env = replace(ready.env(), schema_of=lambda image, role: closed)
    ready.delete()
    ready.run(env)
    ready.run(env)
    assert ready.job_ops()[-1] == "destroy"


def test_inputs_that_do_not_fit_are_named_with_size_and_limit(world: World):
    world.edit(variables(json.dumps({"blob": "x" * 1_000_001})))
    world.run()
    assert world.run().requeue_after == 600
    assert world.reason("ApplyJobSucceeded") == "False/InputsTooLarge"
    assert "1000000" in world.condition("ApplyJobSucceeded").message
    assert world.jobs() == []


def test_owner_references_of_an_earlier_object_are_repaired(ready: World):
    secret = state_secret(ready)
    secret.metadata.owner_references[0].uid = "old"
    ready.door.update(SECRETS, secret)
    ready.run()
    uids = [ref.uid for ref in state_secret(ready).metadata.owner_references]
    assert uids == [ready.obj.metadata.uid]
    assert ready.events.reasons == ["OwnerReferencesRepaired"]
    ready.writes.forget()
    ready.settle(2)
    assert ready.writes.seen == []


@pytest.mark.parametrize("failing_write", range(4))
def test_a_repair_of_owner_references_that_fails_is_tried_again(ready: World, failing_write: int):
    """Whichever Secret it was: a pass looks at some of them only."""
    mine = [
        secret.metadata.name
        for secret in ready.door.list(SECRETS, NAMESPACE).items
        if any(ref.kind == "TerraformCluster" for ref in secret.metadata.owner_references)
        and not secret.metadata.name.startswith("captf-run-")
    ]
    earlier = {"apiVersion": API_VERSION, "kind": "TerraformCluster", "name": NAME, "uid": "old"}
    for name in mine:
        patch = {"metadata": {"ownerReferences": [earlier]}}
        ready.door.patch(SECRETS, name, NAMESPACE, patch)
    writes: list[str] = []

    def before(method: str, resource: Any) -> None:
        if method == "patch" and resource.plural == "secrets":
            writes.append(method)
            if len(writes) == failing_write + 1:
                raise Unavailable("no answer")

    with contextlib.suppress(Unavailable):
        ready.run(ready.env(door=HookedDoor(ready.door, before=before)))
    ready.settle(2)
    owners = {
        name: [ref.uid for ref in secret.metadata.owner_references]
        for name in mine
        if (secret := ready.secret(name)) is not None
    }
    assert len(owners) >= 4
    assert owners == {name: [ready.obj.metadata.uid] for name in owners}


class LateJobs:
    """A cache that gives an old answer to the first question for an object's Jobs."""

    def __init__(self, cache: Any, old: Any) -> None:
        self._cache, self._old = cache, [old]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cache, name)

    def jobs_of(self, owner: Any) -> Any:
        return self._old.pop() if self._old else self._cache.jobs_of(owner)


def test_a_job_that_ends_during_the_pass_is_never_judged_by_the_state_from_before(ready: World):
    ready.edit(variables('{"region":"eu-2"}'))
    ready.run()
    job, jobs = ready.active_job(), ready.cache.jobs_of(ready.owner)
    ready.runner.succeed(job)
    ready.run(ready.env(cache=LateJobs(ready.cache, jobs)))
    assert ready.reason("InputsApplied") == "False/ApplyRunning"
    ready.run()
    assert ready.reason("InputsApplied") == "True/InputsApplied"
    assert ready.running() == []


def test_a_chunk_that_is_not_ours_stops_a_changed_object_too(ready: World):
    suffix = ready.owner.suffix
    stray = Secret(
        metadata=ObjectMeta(
            name=names.state_secret(suffix, 5),
            namespace=NAMESPACE,
            labels={
                keys.TFSTATE: "true",
                keys.TFSTATE_SUFFIX: suffix,
                keys.TFSTATE_WORKSPACE: "default",
            },
        ),
        data={keys.TFSTATE: b"x"},
    )
    ready.create(SECRETS, stray)
    ready.edit(variables('{"region":"eu-2"}'))
    ready.run()
    assert ready.reason("StateReadable") == "False/StateInconsistent"
    assert ready.running() == []
