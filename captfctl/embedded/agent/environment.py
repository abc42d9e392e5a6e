"""The environment of a container's main process."""

from collections.abc import Callable, Mapping

from captfctl.cluster.door import Door
from captfctl.cluster.errors import NotFound
from captfctl.embedded.agent.access import ApiAccess
from captfctl.embedded.agent.command import Paths, expand
from captfctl.embedded.agent.volumes import Unsupported, field
from captfctl.errors import CaptfError
from captfctl.model.core import Container, EnvVar, Pod
from captfctl.model.resources import CONFIG_MAPS, SECRETS
from runner import wire


class ConfigProblem(CaptfError):
    """The environment needs something that is not there: `CreateContainerConfigError`."""

    code = "CreateContainerConfigError"


def environment(
    door: Door,
    pod: Pod,
    container: Container,
    base: Mapping[str, str],
    access: ApiAccess,
    access_directory: str,
    hostname: str,
    paths: Paths,
) -> dict[str, str]:
    """Explicit variables beat `envFrom`, both beat the image's own (`base`).

    Raises `ConfigProblem`, `Unsupported`, and what the door raises.
    """
    source = _Source(door, pod)
    variables = {
        **base,
        "HOSTNAME": hostname,
        "KUBERNETES_SERVICE_HOST": access.host,
        "KUBERNETES_SERVICE_PORT": str(access.port),
        wire.SERVICE_ACCOUNT_VARIABLE: access_directory,
    }
    for origin in container.env_from:
        for reference, read in (
            (origin.secret_ref, source.secret),
            (origin.config_map_ref, source.config_map),
        ):
            if reference is not None:
                found = read(reference.name, reference.optional)
                variables |= {
                    origin.prefix + key: paths.here(value) for key, value in found.items()
                }
    for variable in container.env:
        value = source.value(variable, variables)
        if value is not None:
            variables[variable.name] = paths.here(value)
    return variables


class _Source:
    def __init__(self, door: Door, pod: Pod) -> None:
        self._door = door
        self._pod = pod

    def value(self, variable: EnvVar, variables: Mapping[str, str]) -> str | None:
        """None when an optional key is not there."""
        origin = variable.value_from
        if not origin:
            return expand(variable.value, variables)
        if "fieldRef" in origin:
            return field(self._pod, origin["fieldRef"].get("fieldPath", ""))
        for name, read in (
            ("secretKeyRef", self.secret),
            ("configMapKeyRef", self.config_map),
        ):
            if name in origin:
                return self._key(origin[name], read)
        raise Unsupported(f"variable {variable.name} has a source that this node cannot provide")

    def _key(
        self, reference: Mapping[str, object], read: Callable[[str, bool], dict[str, str]]
    ) -> str | None:
        optional = bool(reference.get("optional"))
        name, key = str(reference.get("name", "")), str(reference.get("key", ""))
        found = read(name, optional)
        if key not in found and not optional:
            raise ConfigProblem(f"couldn't find key {key} in {name}")
        return found.get(key)

    def secret(self, name: str, optional: bool) -> dict[str, str]:
        try:
            data = self._door.get(SECRETS, name, self._pod.metadata.namespace).data
        except NotFound:
            return _absent(f'secret "{name}" not found', optional)
        return {key: value.decode(errors="replace") for key, value in data.items()}

    def config_map(self, name: str, optional: bool) -> dict[str, str]:
        try:
            return self._door.get(CONFIG_MAPS, name, self._pod.metadata.namespace).data
        except NotFound:
            return _absent(f'configmap "{name}" not found', optional)


def _absent(message: str, optional: bool) -> dict[str, str]:
    if optional:
        return {}
    raise ConfigProblem(message)
