"""The restore drill: states that are damaged in every way are put back from their backups."""

import gzip
import json
import random

from captfctl.model import keys, names
from captfctl.model.ops import Op
from captfctl.model.resources import SECRETS, TERRAFORM_CLUSTERS
from captfctl.terraform.state.backups import read_backups
from captfctl.terraform.state.protected import delete_protected, encode_data
from tests.e2e.scenarios import NAME, Story, leftovers, nothing_left
from tests.e2e.site import eventually
from tests.e2e.states import rewrite, state_secret, wait_for


def backed_up(story: Story) -> list[int]:
    return [backup.serial for backup in story.cluster().status.state_backups]


def ids(story: Story) -> list[str]:
    """Of the resources in the state that is stored."""
    document = json.loads(gzip.decompress(_payload(story)))
    return [
        instance["attributes"]["id"]
        for resource in document["resources"]
        for instance in resource["instances"]
    ]


def _payload(story: Story) -> bytes:
    suffix = names.state_suffix("TerraformCluster", story.namespace, NAME)
    count = len(story.state().chunks)
    secrets = [names.state_secret(suffix, index) for index in range(count)]
    return b"".join(
        story.door.get(SECRETS, name, story.namespace).data[keys.TFSTATE] for name in secrets
    )


def put(story: Story, data: bytes) -> None:
    patch = {"data": encode_data({keys.TFSTATE: data})}
    story.door.patch(SECRETS, state_secret(story).metadata.name, story.namespace, patch)


def cut_in_half(story: Story) -> None:
    whole = _payload(story)
    put(story, whole[: len(whole) // 2])


def request(story: Story, serial: int) -> None:
    annotation = f"{keys.RESTORE_STATE}={serial}"
    story.site.kubectl("annotate", "terraformcluster", NAME, "-n", story.namespace, annotation)


def wait_restored(story: Story, times: int) -> int:
    """Until that many restores are done and read; the serial of the state then."""

    def restored() -> bool:
        asked = keys.RESTORE_STATE in story.cluster().metadata.annotations
        return not asked and len(story.events("StateRestored")) == times and story.settled()

    # A manager that is killed between a Job and its Secret leaves one that is stuck for a minute.
    eventually(restored, lambda: f"{times} restores: {story.explain()}", 150)
    return story.state().serial


def three_serials(story: Story) -> int:
    """Three applies; the serial of the newest."""
    story.create()
    story.wait_settled()
    for subnets in (3, 4):
        story.set_variables(subnets=subnets)
        eventually(lambda count=subnets: len(story.jobs(Op.APPLY)) == count - 1, "the next apply")
        story.wait_settled()
    serial = story.state().serial
    eventually(lambda: backed_up(story)[:1] == [serial], "it is backed up", 20)
    assert len(backed_up(story)) >= 3
    return serial


def ask_again_if_it_failed(story: Story, serial: int) -> None:
    """As the condition says, once the run has ended."""

    def failed() -> bool:
        found = story.condition("RestoreJobSucceeded")
        return found is not None and found.reason == "RestoreFailed"

    def asked() -> bool:
        return keys.RESTORE_STATE in story.cluster().metadata.annotations

    eventually(lambda: failed() or not asked(), lambda: f"it ends: {story.explain()}", 150)
    if failed():
        taken_back = f"{keys.RESTORE_STATE}-"
        story.site.kubectl("annotate", "terraformcluster", NAME, "-n", story.namespace, taken_back)
        eventually(lambda: not story.cluster().status.last_restored_serial, "it is forgotten", 20)
        request(story, serial)


def damaged_states_are_restored(story: Story, *, server_stays: bool) -> None:
    """Nothing is created again, whatever became of the state. `server_stays`: when the manager is
    killed; without a server to push to, a restore fails, and is not tried again by itself."""
    serial = three_serials(story)
    before, applies = ids(story), len(story.jobs(Op.APPLY))

    cut_in_half(story)
    assert f"{keys.RESTORE_STATE}=<serial>" in wait_for(story, "StateCorrupt")
    request(story, serial)
    serial = wait_restored(story, 1)

    rewrite(story, {"lineage": "ffff0000-0000-4000-8000-000000000000", "serial": 90})
    assert str(serial) in wait_for(story, "StateReplaced")
    request(story, serial)
    serial = wait_restored(story, 2)

    rewrite(story, {"resources": [], "outputs": {}, "serial": 91})
    wait_for(story, "StateReplaced")
    request(story, serial)
    serial = wait_restored(story, 3)

    delete_protected(story.door, state_secret(story).metadata)
    wait_for(story, "StateLost")
    request(story, serial)
    eventually(lambda: len(story.jobs(Op.RESTORE)) == 4, "the restore starts", 20)
    story.site.crash_manager()
    if not server_stays:
        ask_again_if_it_failed(story, serial)
    serial = wait_restored(story, 4)

    assert ids(story) == before
    assert len(story.jobs(Op.APPLY)) == applies
    story.set_variables(subnets=5)
    eventually(lambda: story.state().serial > serial, lambda: f"{story.explain()}", 60)
    story.wait_settled()
    assert ids(story)[0] == before[0]


def lost_chunk_is_restored(story: Story) -> None:
    """A state of two Secrets loses one of them; the deletion that waits for it goes on."""
    story.create()
    story.wait_settled()
    serial = _store_in_two_secrets(story)
    eventually(lambda: backed_up(story)[:1] == [serial], lambda: f"{story.explain()}", 30)
    (newest, *_) = read_backups(story.door, story.state_owner())
    assert newest.count == 2

    story.door.delete(SECRETS, _second(story), story.namespace)
    wait_for(story, "StateCorrupt")
    story.site.kubectl("delete", "cluster", NAME, "-n", story.namespace, "--wait=false")
    eventually(
        lambda: "deletion is held" in wait_for(story, "StateCorrupt"), "the deletion is held", 20
    )
    request(story, serial)
    eventually(story.gone, lambda: f"destroyed: {story.explain()}", 60)
    assert story.events("StateRestored")
    assert story.events("Destroyed")
    eventually(lambda: nothing_left(story), lambda: f"nothing left: {leftovers(story)}", 30)


def _second(story: Story) -> str:
    """The name of the Secret with the second part of the state."""
    suffix = names.state_suffix("TerraformCluster", story.namespace, NAME)
    return names.state_secret(suffix, 1)


def _store_in_two_secrets(story: Story) -> int:
    """Another version of the state, too large for one Secret; its serial."""
    filler = {"value": random.Random(1).randbytes(1_300_000).hex(), "type": "string"}
    document = json.loads(gzip.decompress(_payload(story)))
    document["serial"] += 1
    document["outputs"]["filler"] = filler
    first, second = _split(gzip.compress(json.dumps(document).encode()))
    part = state_secret(story)
    meta = part.metadata
    meta.name, meta.resource_version, meta.uid = _second(story), "", ""
    meta.annotations, meta.finalizers = {}, []
    part.data = {keys.TFSTATE: second}
    _pause(story, "true")
    put(story, first)
    story.door.create(SECRETS, part, story.namespace)
    _pause(story, None)
    return int(document["serial"])


def _pause(story: Story, paused: str | None) -> None:
    patch = {"metadata": {"annotations": {keys.PAUSED: paused}}}
    story.door.patch(TERRAFORM_CLUSTERS, NAME, story.namespace, patch)


def _split(payload: bytes) -> tuple[bytes, bytes]:
    """As the backend does."""
    assert 2**20 < len(payload) < 2**21
    return payload[: 2**20], payload[2**20 :]
