"""The yardstick: the least that an operator of the kopf framework does for an object, reading it.

    kopf run --standalone --all-namespaces benchmarks/manager/kopf_operator.py

Prints the time (seconds since the epoch) at which it saw each object, for the benchmark to read.
"""

import sys
import time
from typing import Any

import kopf

GROUP, VERSION = "infrastructure.cluster.x-k8s.io", "v1alpha1"


@kopf.on.event(GROUP, VERSION, "terraformclusters")
@kopf.on.event(GROUP, VERSION, "terraformmachines")
@kopf.on.event(GROUP, VERSION, "terraformmachinepools")
async def seen(body: kopf.Body, name: str, **_: Any) -> None:
    sys.stdout.write(f"saw {name} {body.spec['variables'].get('change', '')} {time.time()}\n")
    sys.stdout.flush()


@kopf.on.startup()
async def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
    settings.posting.enabled = False
