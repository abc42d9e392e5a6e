"""States and backups of objects as their Secrets, with resources that have addresses."""

import gzip
import hashlib
import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from captfctl.cluster.door import Door
from captfctl.model import keys, names
from captfctl.model.core import Secret
from captfctl.model.meta import ObjectMeta, seconds_stamp
from captfctl.model.owner import Owner
from captfctl.model.resources import SECRETS

LINEAGE = "8f0d8fa2-4b5e-4cc5-8a52-1f0c9b0f6f0e"
TAKEN = datetime(2026, 3, 1, 10, 0, tzinfo=UTC)


def payload(serial: int, addresses: Iterable[str], lineage: str = LINEAGE) -> bytes:
    """A compressed state with one resource for each `TYPE.NAME`."""
    resources: list[dict[str, Any]] = []
    for address in addresses:
        kind, _, name = address.partition(".")
        instances = [{"schema_version": 0, "attributes": {"secret": "canary"}}]
        resources.append({"mode": "managed", "type": kind, "name": name, "instances": instances})
    document = {
        "version": 4,
        "terraform_version": "1.9.0",
        "serial": serial,
        "lineage": lineage,
        "outputs": {},
        "resources": resources,
    }
    return gzip.compress(json.dumps(document).encode(), mtime=0)


def put_state(
    door: Door,
    owner: Owner,
    serial: int,
    addresses: Iterable[str],
    *,
    lineage: str = LINEAGE,
    inputs_hash: str = "",
    retained_from: str = "",
    cluster: str = "",
) -> None:
    """The object's state, in one Secret."""
    labels = {
        **owner.labels,
        keys.MANAGED: keys.TRUE,
        keys.TFSTATE: keys.TRUE,
        keys.TFSTATE_SUFFIX: owner.suffix,
        keys.TFSTATE_WORKSPACE: "default",
        keys.CLUSTER_NAME: cluster or owner.cluster,
    }
    if retained_from:
        labels[keys.RETAINED_FROM_UID] = retained_from
    annotations = {keys.INPUTS_HASH: inputs_hash} if inputs_hash else {}
    meta = ObjectMeta(
        name=names.state_secret(owner.suffix),
        namespace=owner.namespace,
        labels=labels,
        annotations=annotations,
    )
    data = {keys.TFSTATE: payload(serial, addresses, lineage)}
    door.create(SECRETS, Secret(metadata=meta, data=data))


def put_backup(
    door: Door,
    owner: Owner,
    serial: int,
    addresses: Iterable[str],
    *,
    lineage: str = LINEAGE,
    inputs_hash: str = "h2:0",
    taken: datetime = TAKEN,
    chunks: int = 1,
    without: int | None = None,
    name: str = "",
    **notes: str,
) -> str:
    """A backup set; `without` leaves a chunk out, `notes` are other annotations than it should
    have, by the names of `keys`. Returns the set's name."""
    listed = list(addresses)
    whole = payload(serial, listed, lineage)
    base = name or names.state_backup(owner.suffix, serial)
    size = -(-len(whole) // chunks)
    for index in range(chunks):
        if index == without:
            continue
        annotations = {
            keys.BACKUP_SERIAL: str(serial),
            keys.BACKUP_LINEAGE: lineage,
            keys.BACKUP_TAKEN_AT: seconds_stamp(taken),
            keys.BACKUP_SOURCE_JOB: "captf-c-prod-apply-a1-000000",
            keys.BACKUP_DIGEST: hashlib.sha256(whole).hexdigest(),
            keys.BACKUP_RESOURCES: str(len(listed)),
            keys.BACKUP_BYTES: str(len(whole)),
            keys.BACKUP_SET: base,
            keys.BACKUP_CHUNK: str(index),
            keys.BACKUP_CHUNKS: str(chunks),
        }
        if index == 0 and inputs_hash:
            annotations[keys.INPUTS_HASH] = inputs_hash
        annotations |= {getattr(keys, key): value for key, value in notes.items()}
        labels = {
            **owner.labels,
            keys.STATE_BACKUP: keys.TRUE,
            keys.STATE_BACKUP_SUFFIX: owner.suffix,
        }
        meta = ObjectMeta(
            name=names.backup_chunk(base, index),
            namespace=owner.namespace,
            labels=labels,
            annotations=annotations,
        )
        data = {keys.TFSTATE: whole[index * size : (index + 1) * size]}
        door.create(SECRETS, Secret(metadata=meta, data=data))
    return base
