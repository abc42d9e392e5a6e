"""What a pod's specification is filled in with."""

from typing import Any

from captfctl.model.resource import Document

_MODE = 0o644


def default_pod_spec(spec: Document) -> None:
    """Fill in the defaults of a pod's specification, in place."""
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("securityContext", {})
    spec.setdefault("schedulerName", "default-scheduler")
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    for container in (*spec.get("initContainers", ()), *spec.get("containers", ())):
        _container(container)
    for volume in spec.get("volumes", ()):
        _volume(volume)


def default_requests(spec: Document) -> None:
    """Of a pod, not of a template: without a request, a limit is one."""
    for container in (*spec.get("initContainers", ()), *spec.get("containers", ())):
        resources = container["resources"]
        for name, limit in resources.get("limits", {}).items():
            resources.setdefault("requests", {}).setdefault(name, limit)


def _container(container: Document) -> None:
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    container.setdefault("imagePullPolicy", _pull_policy(container.get("image", "")))
    for port in container.get("ports", ()):
        port.setdefault("protocol", "TCP")
    for variable in container.get("env", ()):
        _field_ref(variable.get("valueFrom", {}))
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if name in container:
            _probe(container[name])


def _pull_policy(image: str) -> str:
    if "@" in image:
        return "IfNotPresent"
    tag = image.rpartition("/")[2].partition(":")[2]
    return "Always" if tag in ("", "latest") else "IfNotPresent"


def _probe(probe: Document) -> None:
    for key, value in (
        ("timeoutSeconds", 1),
        ("periodSeconds", 10),
        ("successThreshold", 1),
        ("failureThreshold", 3),
    ):
        probe.setdefault(key, value)
    if "httpGet" in probe:
        probe["httpGet"].setdefault("path", "/")
        probe["httpGet"].setdefault("scheme", "HTTP")


def _field_ref(holder: Document) -> None:
    if "fieldRef" in holder:
        holder["fieldRef"].setdefault("apiVersion", "v1")


def _volume(volume: Document) -> None:
    if set(volume) <= {"name"}:
        volume["emptyDir"] = {}
    for kind in ("secret", "configMap", "projected", "downwardAPI"):
        if kind in volume:
            volume[kind].setdefault("defaultMode", _MODE)
    if "hostPath" in volume:
        volume["hostPath"].setdefault("type", "")
    sources: list[Any] = [volume.get("downwardAPI", {})]
    for source in volume.get("projected", {}).get("sources", ()):
        sources.append(source.get("downwardAPI", {}))
        if "serviceAccountToken" in source:
            source["serviceAccountToken"].setdefault("expirationSeconds", 3600)
    for source in sources:
        for item in source.get("items", ()):
            _field_ref(item)
