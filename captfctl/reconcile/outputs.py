"""Writing what the module's outputs say to the object (module-contract.md: What outputs change)."""

from captfctl.model import keys
from captfctl.model.conditions import Type
from captfctl.model.events import EventReason
from captfctl.model.reasons import InfrastructureHealthy
from captfctl.model.terraform import ControlPlaneEndpoint
from captfctl.reconcile.context import Pass
from captfctl.reconcile.inputs import previous_tfvars
from captfctl.terraform.contract.build import SOURCE_MODULE, endpoint_input_was_null
from captfctl.terraform.contract.mapping import map_cluster
from captfctl.terraform.contract.outputs import decode_cluster
from captfctl.terraform.state.reader import State


def map_outputs(p: Pass, state: State) -> None:
    """Decode the state's outputs and set everything on the object that follows from them."""
    outputs = decode_cluster({name: output.value for name, output in state.outputs.items()})
    mapped = map_cluster(
        p.obj,
        p.lookup.cluster,
        outputs,
        state_has_hash=bool(state.inputs_hash),
        endpoint_input_was_null=endpoint_input_was_null(previous_tfvars(p)),
    )
    p.set(Type.OUTPUTS_VALID, mapped.outputs_valid)
    if mapped.infrastructure_healthy is not None:
        p.set(Type.INFRASTRUCTURE_HEALTHY, mapped.infrastructure_healthy)
    else:
        p.conditions.set_default(InfrastructureHealthy.WAITING_FOR_PROVISIONING)
    if mapped.endpoint_available is not None:
        p.set(Type.ENDPOINT_AVAILABLE, mapped.endpoint_available)
    if mapped.endpoint is not None:
        p.obj.spec.control_plane_endpoint = ControlPlaneEndpoint(
            host=mapped.endpoint.host, port=mapped.endpoint.port
        )
        p.obj.metadata.annotations[keys.ENDPOINT_SOURCE] = SOURCE_MODULE
    p.obj.status.failure_domains = list(mapped.failure_domains)
    p.obj.status.exports = mapped.exports
    if mapped.provisioned and not p.provisioned:
        p.latch_provisioned()
        p.later.append(EventReason.PROVISIONED.says("the infrastructure is provisioned"))
    p.later.extend(mapped.notes)
