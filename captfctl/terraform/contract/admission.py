"""What admission refuses beyond the schema (30 §3.2 to §3.4, §6).

The rules that a real API server evaluates as CEL are repeated here, for objects that come from
files or reach a server that does not evaluate CEL.
"""

from collections.abc import Iterator

import msgspec

from captfctl.cluster.errors import Cause
from captfctl.model.capi import Endpoint
from captfctl.model.resource import Document, Resource
from captfctl.model.resources import TERRAFORM_CLUSTERS
from captfctl.model.roles import Role
from captfctl.model.terraform import JobPolicy, TerraformCluster, VariablesSource
from captfctl.terraform.contract.causes import forbidden, invalid, required, too_many
from captfctl.terraform.contract.errors import VariablesError
from captfctl.terraform.contract.image_reference import image_problem
from captfctl.terraform.contract.job_policy import check_job_policy
from captfctl.terraform.contract.variables import MAX_INLINE, name_problem, parse_inline


def check_cluster(new: TerraformCluster, old: TerraformCluster | None = None) -> tuple[Cause, ...]:
    """Every violation of a create (`old` is None) or an update, with its field path."""
    return tuple(_check_cluster(new, old))


def check_described(resource: Resource[Document], document: Document) -> tuple[Cause, ...]:
    """The same for an object of any kind that comes from a file and fits its schema."""
    if (resource.group, resource.kind) != (TERRAFORM_CLUSTERS.group, TERRAFORM_CLUSTERS.kind):
        return ()
    return check_cluster(TERRAFORM_CLUSTERS.decode(msgspec.json.encode(document)))


def _check_cluster(new: TerraformCluster, old: TerraformCluster | None) -> Iterator[Cause]:
    spec, before = new.spec, old.spec if old else None
    if spec.identity_ref is None:
        yield required(
            "spec.identityRef", "spec.defaults.identityRef covers machines and pools only"
        )
    if before is None or spec.source.image != before.source.image:
        yield from _check_image(spec.source.image)
    yield from _check_endpoint(
        spec.control_plane_endpoint, before.control_plane_endpoint if before else None
    )
    if not new.deleting:
        yield from _check_policy(spec.jobs, before.jobs if before else None, "spec.jobs")
        yield from _check_policy(
            spec.defaults.jobs if spec.defaults else None,
            before.defaults.jobs if before and before.defaults else None,
            "spec.defaults.jobs",
        )
    if before is None or bytes(spec.variables) != bytes(before.variables):
        yield from _check_variables(spec.variables, Role.CLUSTER)
    yield from _check_sources(spec.variables_from)


def _check_image(image: str) -> Iterator[Cause]:
    path = "spec.source.image"
    problem = image_problem(image)
    if problem and not image:
        yield required(path, problem)
    elif problem:
        yield invalid(path, f'"{image}": not a valid image reference: it {problem}')


def _check_endpoint(new: Endpoint | None, old: Endpoint | None) -> Iterator[Cause]:
    """Once host and port are both set they stay: machines and kubeconfigs point at them."""
    path = "spec.controlPlaneEndpoint"
    if old is not None and old.valid:
        if new is None or (new.host, new.port) != (old.host, old.port):
            yield forbidden(
                path,
                "cannot be changed or removed any more: the cluster's machines and every "
                "kubeconfig point at it",
            )
    elif new is not None and bool(new.host) != bool(new.port):
        missing = "port" if new.host else "host"
        yield required(f"{path}.{missing}", "set both host and port, or neither")


def _check_policy(new: JobPolicy | None, old: JobPolicy | None, path: str) -> Iterator[Cause]:
    # A stored policy that breaks newer rules must not stop changes of other fields.
    if new is not None and new != old:
        yield from check_job_policy(new, path)


def _check_variables(variables: msgspec.Raw, role: Role) -> Iterator[Cause]:
    path = "spec.variables"
    try:
        inline = parse_inline(variables)
    except VariablesError as error:
        yield invalid(path, f"{error.what}: {error.why}" if error.why else error.what)
        return
    if len(inline) > MAX_INLINE:
        yield too_many(path, len(inline), MAX_INLINE)
    elif bytes(variables) and not inline:
        yield invalid(path, "must hold at least one variable, or be left out")
    for name in sorted(inline):
        problem = name_problem(name, role)
        if problem:
            yield invalid(f"{path}[{_shown(name)}]", f"the name {problem}")


def _check_sources(sources: list[VariablesSource]) -> Iterator[Cause]:
    for index, source in enumerate(sources):
        if (source.config_map_ref is None) == (source.secret_ref is None):
            yield invalid(
                f"spec.variablesFrom[{index}]", "set exactly one of configMapRef and secretRef"
            )


def _shown(name: str) -> str:
    return name if name.isprintable() else repr(name)
