"""Identities, their copies, and the runner's rights (credentials.md: Identities)."""

import pytest

from captfctl.cluster.errors import Conflict, Forbidden, Unavailable
from captfctl.model import keys
from captfctl.model.core import RoleBinding, RoleRef, Secret, ServiceAccount
from captfctl.model.identity import AllowedNamespaces, SecretRef
from captfctl.model.meta import LabelSelector, LabelSelectorRequirement, ObjectMeta, OwnerReference
from captfctl.model.owner import Owner
from captfctl.model.resources import (
    CLUSTERS,
    NAMESPACES,
    ROLE_BINDINGS,
    SECRETS,
    SERVICE_ACCOUNTS,
    TERRAFORM_CLUSTER_IDENTITIES,
    TERRAFORM_CLUSTERS,
)
from captfctl.model.terraform import IdentityKind, IdentityRef, JobPolicy
from captfctl.reconcile import local_secret, mirror
from captfctl.reconcile.selectors import matches
from tests.support.cluster_world import (
    NAMESPACE,
    World,
    cluster,
    identity,
    terraform_cluster,
    variables,
)
from tests.support.doors import Overridden

MIRROR = "captf-creds-cloud"


def change_identity(world: World, change) -> None:
    identity = world.door.get(TERRAFORM_CLUSTER_IDENTITIES, "cloud")
    change(identity.spec)
    world.door.update(TERRAFORM_CLUSTER_IDENTITIES, identity)


def allow(allowed: AllowedNamespaces | None):
    return lambda spec: setattr(spec, "allowed_namespaces", allowed)


def test_the_mirror_is_a_marked_copy_with_its_user_as_owner(ready: World):
    copy = ready.secret(MIRROR)
    assert copy.data == {"TOKEN": b"s3cr3t"}
    assert copy.metadata.labels == {keys.MIRRORED: "true", keys.MANAGED: "true"}
    assert copy.metadata.annotations[keys.IDENTITY] == "cloud"
    (user,) = copy.metadata.owner_references
    assert (user.kind, user.uid) == ("TerraformCluster", ready.obj.metadata.uid)
    assert user.block_owner_deletion is False


def test_a_rotated_secret_reaches_the_mirror_at_the_next_pass(ready: World):
    source = ready.door.get(SECRETS, "cloud", "captf-system")
    source.data = {"TOKEN": b"new", "MORE": b"x"}
    ready.door.update(SECRETS, source)
    ready.run()
    assert ready.secret(MIRROR).data == {"TOKEN": b"new", "MORE": b"x"}


def test_a_namespace_that_is_no_longer_allowed_loses_its_mirror(ready: World):
    change_identity(ready, allow(AllowedNamespaces(names=["elsewhere"])))
    ready.settle(2)
    assert ready.reason("IdentityAllowed") == "False/NamespaceNotAllowed"
    assert ready.reason("CredentialsMirrored") == "Unknown/MirrorPending"
    assert ready.secret(MIRROR) is None
    assert ready.events.reasons.count("MirrorRemoved") == 1
    assert ready.events.warnings() == ["IdentityNotAllowed"]
    assert ready.reason("Ready") == "True/Ready"


def test_nothing_starts_without_credentials(world: World):
    change_identity(world, allow(None))
    world.run()
    assert world.run().requeue_after == 30
    assert world.jobs() == []


def test_required_keys_are_named_sorted_and_without_values(world: World):
    change_identity(world, lambda spec: setattr(spec, "required_keys", ["B", "A", "TOKEN"]))
    world.settle(2)
    assert world.reason("IdentityAllowed") == "False/CredentialsIncomplete"
    message = world.condition("IdentityAllowed").message
    assert message.endswith("A, B")
    assert "s3cr3t" not in message


def test_a_missing_source_secret_is_named(world: World):
    world.door.delete(SECRETS, "cloud", "captf-system")
    world.settle(2)
    assert world.reason("IdentityAllowed") == "False/SecretNotFound"
    assert "captf-system/cloud" in world.condition("IdentityAllowed").message


def lose_the_secret(world: World) -> None:
    world.door.delete(SECRETS, "cloud", "captf-system")


def lose_the_identity(world: World) -> None:
    world.door.delete(TERRAFORM_CLUSTER_IDENTITIES, "cloud")


def lose_both(world: World) -> None:
    lose_the_secret(world)
    lose_the_identity(world)


LOSSES = [lose_the_secret, lose_the_identity, lose_both]


@pytest.mark.parametrize("lose", LOSSES)
def test_credentials_that_are_gone_leave_the_copy_but_nothing_new_starts(ready: World, lose):
    lose(ready)
    ready.edit(lambda obj: setattr(obj.spec.source, "image", "registry.example.com/prod:v2"))
    ready.settle(2)
    assert ready.reason("IdentityAllowed") in ("False/IdentityNotFound", "False/SecretNotFound")
    assert ready.secret(MIRROR).data == {"TOKEN": b"s3cr3t"}
    assert ready.running() == []


@pytest.mark.parametrize("lose", LOSSES)
def test_a_destroy_uses_the_copy_when_the_credentials_are_gone(ready: World, lose):
    lose(ready)
    ready.delete()
    ready.settle(2)
    assert ready.reason("IdentityAllowed") == "True/CopyKept"
    assert ready.reason("CredentialsMirrored") == "True/Mirrored"
    (container,) = ready.active_job().spec.template.spec.containers
    assert container.env_from[0].secret_ref.name == MIRROR


def test_a_destroy_without_a_copy_waits_for_the_credentials(ready: World):
    lose_the_secret(ready)
    ready.door.delete(SECRETS, MIRROR, NAMESPACE)
    ready.delete()
    ready.settle(2)
    assert ready.reason("IdentityAllowed") == "False/SecretNotFound"
    assert ready.running() == []


def test_a_foreign_secret_in_place_of_the_copy_serves_no_destroy(ready: World):
    lose_the_secret(ready)
    copy = ready.secret(MIRROR)
    copy.metadata.annotations[keys.IDENTITY] = "another"
    ready.door.update(SECRETS, copy)
    ready.delete()
    ready.settle(2)
    assert ready.reason("IdentityAllowed") == "False/SecretNotFound"


def delete_protected(world: World) -> None:
    """Delete the identity while something keeps it."""
    keep = {"metadata": {"finalizers": [keys.IDENTITY_PROTECTION]}}
    world.door.patch(TERRAFORM_CLUSTER_IDENTITIES, "cloud", "", keep)
    world.door.delete(TERRAFORM_CLUSTER_IDENTITIES, "cloud")


def test_an_identity_that_is_being_deleted_goes_on_serving_its_users(ready: World):
    delete_protected(ready)
    ready.edit(lambda obj: setattr(obj.spec.source, "image", "registry.example.com/prod:v2"))
    ready.settle(2)
    assert ready.reason("IdentityAllowed") == "True/IdentityAllowed"
    assert len(ready.running()) == 1


def test_an_identity_that_is_being_deleted_serves_no_new_object(world: World):
    delete_protected(world)
    world.settle(2)
    assert world.reason("IdentityAllowed") == "False/IdentityDeleting"
    assert "serves no further objects" in world.condition("IdentityAllowed").message
    assert world.secret(MIRROR) is None
    assert world.jobs() == []


def test_a_copy_made_for_others_does_not_let_a_new_object_in(world: World):
    source = world.door.get(SECRETS, "cloud", "captf-system")
    mirror.ensure(world.door, "cloud", source, other_user(world))
    delete_protected(world)
    world.settle(2)
    assert world.reason("IdentityAllowed") == "False/IdentityDeleting"
    assert world.jobs() == []


def test_an_identity_that_is_being_deleted_serves_destroys(ready: World):
    delete_protected(ready)
    ready.door.delete(SECRETS, MIRROR, NAMESPACE)
    ready.delete()
    ready.settle(2)
    assert ready.reason("IdentityAllowed") == "True/IdentityAllowed"
    assert len(ready.running()) == 1


def test_an_api_error_is_no_verdict_and_fails_the_pass_after_the_patch(ready: World):
    def broken(*_, **__):
        raise Unavailable("not now")

    door = Overridden(ready.writes, get={"terraformclusteridentities": broken})
    with pytest.raises(Unavailable):
        ready.run(ready.env(door))
    assert ready.reason("IdentityAllowed") == "Unknown/IdentityCheckFailed"
    assert ready.reason("CredentialsMirrored") == "True/Mirrored"
    ready.run()
    assert ready.reason("IdentityAllowed") == "True/IdentityAllowed"


@pytest.mark.parametrize(
    ("allowed", "labels", "expected"),
    [
        (None, {}, False),
        (AllowedNamespaces(names=[NAMESPACE]), {}, True),
        (AllowedNamespaces(names=["elsewhere"]), {}, False),
        (AllowedNamespaces(selector=LabelSelector()), {}, True),
        (AllowedNamespaces(selector=LabelSelector(match_labels={"t": "a"})), {"t": "a"}, True),
        (AllowedNamespaces(selector=LabelSelector(match_labels={"t": "a"})), {"t": "b"}, False),
        (
            AllowedNamespaces(names=[NAMESPACE], selector=LabelSelector(match_labels={"t": "a"})),
            {},
            True,
        ),
    ],
)
def test_allowed_namespaces(world: World, allowed, labels, expected: bool):
    change_identity(world, allow(allowed))
    world.door.patch(NAMESPACES, NAMESPACE, "", {"metadata": {"labels": labels}})
    world.settle(2)
    wanted = "True/IdentityAllowed" if expected else "False/NamespaceNotAllowed"
    assert world.reason("IdentityAllowed") == wanted


def test_label_selectors():
    def selector(operator: str, *values: str) -> LabelSelector:
        term = LabelSelectorRequirement(key="t", operator=operator, values=list(values))
        return LabelSelector(match_expressions=[term])

    assert matches(selector("In", "a", "b"), {"t": "b"})
    assert not matches(selector("In", "a"), {})
    assert matches(selector("NotIn", "a"), {})
    assert not matches(selector("NotIn", "a"), {"t": "a"})
    assert matches(selector("Exists"), {"t": ""})
    assert matches(selector("DoesNotExist"), {})
    with pytest.raises(ValueError, match="unknown operator"):
        matches(selector("Like"), {"t": "a"})
    with pytest.raises(ValueError, match="do not fit"):
        matches(selector("In"), {"t": "a"})


def test_a_secret_of_the_namespace_is_used_as_it_is(world: World):
    world.create(
        SECRETS, Secret(metadata=ObjectMeta(name="own", namespace=NAMESPACE), data={"K": b"v"})
    )

    def local(obj):
        obj.spec.identity_ref = IdentityRef(name="own", kind=IdentityKind.SECRET)

    world.edit(local)
    world.settle(2)
    assert world.reason("IdentityAllowed") == "True/LocalSecret"
    assert world.secret(MIRROR) is None
    job = world.active_job()
    (container,) = job.spec.template.spec.containers
    assert container.env_from[0].secret_ref.name == "own"


def use_own_secret(world: World, finalizers: list[str] | None = None) -> None:
    meta = ObjectMeta(name="own", namespace=NAMESPACE, finalizers=finalizers or [])
    world.create(SECRETS, Secret(metadata=meta, data={"K": b"v"}))
    reference = IdentityRef(name="own", kind=IdentityKind.SECRET)
    world.edit(lambda obj: setattr(obj.spec, "identity_ref", reference))


def test_a_secret_of_the_namespace_is_kept_beside_what_others_put_on_it(world: World):
    use_own_secret(world, ["example.com/mine"])
    world.settle(2)
    kept = world.secret("own").metadata
    assert kept.finalizers == ["example.com/mine", keys.IDENTITY_PROTECTION]
    assert kept.labels == {keys.IDENTITY_IN_USE: "true"}
    world.runner.succeed(world.active_job())
    world.settle(3)
    assert world.secret("own").metadata.resource_version == kept.resource_version


def test_a_secret_that_changes_while_it_is_protected_is_read_again(world: World):
    use_own_secret(world)
    stale = world.secret("own")
    world.door.patch(SECRETS, "own", NAMESPACE, {"metadata": {"labels": {"a": "b"}}})
    local_secret.keep(world.door, stale)
    kept = world.secret("own").metadata
    assert kept.finalizers == [keys.IDENTITY_PROTECTION]
    assert kept.labels == {"a": "b", keys.IDENTITY_IN_USE: "true"}


def test_a_secret_that_is_being_deleted_serves_its_users_and_no_new_object(world: World):
    use_own_secret(world)
    world.settle(2)
    assert len(world.running()) == 1
    world.door.delete(SECRETS, "own", NAMESPACE)
    world.run()
    assert world.reason("IdentityAllowed") == "True/LocalSecret"

    world.advance(seconds=5)
    owner = cluster()
    owner.metadata.name = owner.spec.infrastructure_ref.name = "later"
    reference = IdentityRef(name="own", kind=IdentityKind.SECRET)
    later = terraform_cluster(world.create(CLUSTERS, owner), identity_ref=reference)
    world.create(TERRAFORM_CLUSTERS, later)
    world.key = (NAMESPACE, "later")
    world.settle(2)
    assert world.reason("IdentityAllowed") == "False/IdentityDeleting"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({}, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        (
            {"A": b"1", "B": b"22"},
            "ee44bf434e94d9b6a0636ffe89af8dc04275191afa8a169441effa4c347947b8",
        ),
        ({"A": b"x"}, "8c3ad8909b8bb25273a7ce203cf16f549163e4a693f3c355907cbbe1c1360d62"),
    ],
)
def test_source_hash_vectors(data, expected: str):
    assert mirror.source_hash(data) == expected


def test_the_source_hash_tells_keys_from_values():
    assert mirror.source_hash({"AB": b"1"}) != mirror.source_hash({"A": b"B1"})


def test_a_foreign_secret_of_the_mirrors_name_is_not_overwritten(world: World):
    foreign = Secret(metadata=ObjectMeta(name=MIRROR, namespace=NAMESPACE), data={"X": b"y"})
    before = world.create(SECRETS, foreign)
    world.settle(3)
    assert world.reason("CredentialsMirrored") == "False/MirrorFailed"
    assert MIRROR in world.condition("CredentialsMirrored").message
    assert world.secret(MIRROR) == before
    assert world.jobs() == []


def other_user(world: World, name: str = "other") -> Owner:
    return Owner("TerraformCluster", NAMESPACE, name, f"uid-of-{name}", name)


def test_a_mirror_goes_with_its_last_user(ready: World):
    source = ready.door.get(SECRETS, "cloud", "captf-system")
    other = other_user(ready)
    mirror.ensure(ready.door, "cloud", source, other)
    assert not mirror.drop_user(ready.door, "cloud", ready.owner)
    assert [ref.uid for ref in ready.secret(MIRROR).metadata.owner_references] == [other.uid]
    assert mirror.drop_user(ready.door, "cloud", other)
    assert ready.secret(MIRROR) is None


def another_identity(world: World, name: str = "other") -> None:
    secret = Secret(metadata=ObjectMeta(name=name, namespace="captf-system"), data={"T": b"t2"})
    world.create(SECRETS, secret)
    new = identity(secret_ref=SecretRef(name=name, namespace="captf-system"))
    new.metadata.name = name
    world.create(TERRAFORM_CLUSTER_IDENTITIES, new)


def use(name: str, kind: IdentityKind | None = None):
    return lambda obj: setattr(obj.spec, "identity_ref", IdentityRef(name=name, kind=kind))


def copies(world: World) -> list[str]:
    return sorted(name for name in world.secrets() if name.startswith("captf-creds-"))


@pytest.mark.parametrize("local", [False, True])
def test_the_copy_of_an_identity_that_is_named_no_more_goes(ready: World, local: bool):
    another_identity(ready)
    if local:
        own = Secret(metadata=ObjectMeta(name="other", namespace=NAMESPACE), data={"T": b"t"})
        ready.create(SECRETS, own)
    ready.edit(use("other", IdentityKind.SECRET if local else None))
    ready.run()
    assert copies(ready) == ([] if local else ["captf-creds-other"])
    assert "MirrorRemoved" in ready.events.reasons
    ready.settle(2)
    assert ready.reason("CredentialsMirrored") == "True/Mirrored"


def test_a_copy_that_another_object_uses_stays_for_it(ready: World):
    another_identity(ready)
    other = other_user(ready)
    mirror.ensure(ready.door, "cloud", ready.door.get(SECRETS, "cloud", "captf-system"), other)
    ready.edit(use("other"))
    ready.run()
    users = ready.secret(MIRROR).metadata.owner_references
    assert [user.uid for user in users] == [other.uid]


def test_the_old_copy_stays_while_a_job_runs_with_it(ready: World):
    another_identity(ready)
    ready.edit(variables('{"region":"eu-2"}'))
    ready.run()
    job = ready.active_job()
    ready.edit(use("other"))
    ready.settle(2)
    assert MIRROR in copies(ready)
    ready.runner.succeed(job)
    ready.settle(2)
    assert copies(ready) == ["captf-creds-other"]


def test_the_old_copy_stays_until_the_new_credentials_are_there(ready: World):
    ready.edit(use("other"))
    ready.settle(2)
    assert ready.reason("IdentityAllowed") == "False/IdentityNotFound"
    assert copies(ready) == [MIRROR]
    another_identity(ready)
    ready.settle(2)
    assert copies(ready) == ["captf-creds-other"]


def test_an_old_copy_that_is_not_allowed_any_more_goes_at_once(ready: World):
    change_identity(ready, allow(AllowedNamespaces(names=["elsewhere"])))
    ready.edit(use("missing"))
    ready.settle(2)
    assert copies(ready) == []


def test_a_deletion_takes_old_copies_along(ready: World):
    ready.edit(use("missing"))
    ready.settle(2)
    another_identity(ready)
    ready.delete()
    ready.edit(use("other"))
    ready.run()
    assert copies(ready) == [MIRROR, "captf-creds-other"]
    ready.runner.succeed(ready.active_job())
    ready.settle(2)
    assert ready.gone
    assert copies(ready) == []


def test_a_copy_that_changes_meanwhile_is_left_in_the_next_pass(ready: World):
    another_identity(ready)
    ready.edit(use("other"))

    def stale(*_, **__):
        raise Conflict("changed meanwhile")

    with pytest.raises(Conflict):
        ready.run(ready.env(Overridden(ready.writes, delete={"secrets": stale})))
    ready.run()
    assert copies(ready) == ["captf-creds-other"]


def test_an_earlier_object_of_the_name_is_replaced_in_place(ready: World):
    copy = ready.secret(MIRROR)
    copy.metadata.owner_references = [
        OwnerReference(api_version="v1", kind="ConfigMap", name="keep", uid="u-1"),
        OwnerReference(
            api_version="infrastructure.cluster.x-k8s.io/v1alpha1",
            kind="TerraformCluster",
            name="prod",
            uid="old",
        ),
    ]
    ready.door.update(SECRETS, copy)
    ready.run()
    uids = [ref.uid for ref in ready.secret(MIRROR).metadata.owner_references]
    assert uids == ["u-1", ready.obj.metadata.uid]
    assert ready.events.reasons == ["OwnerReferencesRepaired"]


def test_the_runner_gets_its_account_and_binding(ready: World):
    account = ready.door.get(SERVICE_ACCOUNTS, "captf-runner", NAMESPACE)
    binding = ready.door.get(ROLE_BINDINGS, "captf-runner", NAMESPACE)
    assert account.metadata.labels == binding.metadata.labels == {keys.MANAGED: "true"}
    assert (binding.role_ref.kind, binding.role_ref.name) == ("ClusterRole", "captf-runner")
    assert [(s.kind, s.name) for s in binding.subjects] == [("ServiceAccount", "captf-runner")]


def use_account(name: str):
    return lambda obj: setattr(obj.spec, "jobs", JobPolicy(service_account_name=name))


def test_another_account_must_have_opted_in(world: World):
    world.edit(use_account("mine"))
    world.settle(2)
    assert world.reason("RunnerRBACReady") == "False/ServiceAccountNotOptedIn"
    assert "does not exist" in world.condition("RunnerRBACReady").message
    account = ServiceAccount(metadata=ObjectMeta(name="mine", namespace=NAMESPACE))
    world.create(SERVICE_ACCOUNTS, account)
    world.run()
    assert "captf.io/runner" in world.condition("RunnerRBACReady").message
    label = {"metadata": {"labels": {keys.RUNNER: "true"}}}
    world.door.patch(SERVICE_ACCOUNTS, "mine", NAMESPACE, label)
    world.run()
    assert world.reason("RunnerRBACReady") == "True/RBACReady"
    binding = world.door.get(ROLE_BINDINGS, "captf-runner", NAMESPACE)
    assert [subject.name for subject in binding.subjects] == ["mine"]
    assert world.active_job().spec.template.spec.service_account_name == "mine"


def binding_of(role: str, *, managed: bool) -> RoleBinding:
    labels = {keys.MANAGED: "true"} if managed else {}
    return RoleBinding(
        metadata=ObjectMeta(name="captf-runner", namespace=NAMESPACE, labels=labels),
        role_ref=RoleRef(api_group="rbac.authorization.k8s.io", kind="ClusterRole", name=role),
    )


def test_a_foreign_binding_is_not_touched(world: World):
    before = world.create(ROLE_BINDINGS, binding_of("admin", managed=False))
    world.settle(2)
    assert world.reason("RunnerRBACReady") == "False/RBACFailed"
    assert world.door.get(ROLE_BINDINGS, "captf-runner", NAMESPACE) == before


def test_a_binding_of_ours_to_another_role_is_made_anew(world: World):
    world.create(ROLE_BINDINGS, binding_of("admin", managed=True))
    world.settle(2)
    binding = world.door.get(ROLE_BINDINGS, "captf-runner", NAMESPACE)
    assert binding.role_ref.name == "captf-runner"
    assert world.reason("RunnerRBACReady") == "True/RBACReady"


def test_a_refused_right_is_shown_and_fails_the_pass(world: World):
    world.run()

    def refused(*_, **__):
        raise Forbidden("serviceaccounts is forbidden")

    door = Overridden(world.writes, create={"serviceaccounts": refused})
    with pytest.raises(Forbidden):
        world.run(world.env(door))
    assert world.reason("RunnerRBACReady") == "False/RBACFailed"
    assert world.jobs() == []


@pytest.mark.parametrize(
    "what", ["its content", "its label", "its mark", "its users", "its existence"]
)
def test_a_copy_is_brought_up_to_date_when_its_metadata_shows_that_it_is_not(
    ready: World, what: str
):
    copy = ready.secret(MIRROR)
    if what == "its content":
        source = ready.door.get(SECRETS, "cloud", "captf-system")
        source.data["TOKEN"] = b"another"
        ready.door.update(SECRETS, source)
    elif what == "its label":
        del copy.metadata.labels[keys.MANAGED]
        ready.door.update(SECRETS, copy)
    elif what == "its mark":
        copy.metadata.annotations[keys.SOURCE_HASH] = "outdated"
        ready.door.update(SECRETS, copy)
    elif what == "its users":
        copy.metadata.owner_references = []
        ready.door.update(SECRETS, copy)
    else:
        ready.door.delete(SECRETS, MIRROR, NAMESPACE)
    ready.edit(variables('{"region":"eu-2"}'))
    ready.run()
    found, source = ready.secret(MIRROR), ready.door.get(SECRETS, "cloud", "captf-system")
    assert found.data == source.data
    assert found.metadata.labels[keys.MANAGED] == keys.TRUE
    assert found.metadata.annotations[keys.SOURCE_HASH] == mirror.source_hash(source.data)
    assert [ref.uid for ref in found.metadata.owner_references] == [ready.obj.metadata.uid]


def test_a_copy_that_is_up_to_date_is_not_read(ready: World):
    def unread(resource, name, *args, **options):
        assert name != MIRROR, "the copy is read"
        return ready.door.get(resource, name, *args, **options)

    ready.edit(variables('{"region":"eu-2"}'))
    ready.run(ready.env(Overridden(ready.writes, get={"secrets": unread})))
    assert len(ready.running()) == 1
