"""The manager as a workload: Deployment, ServiceAccount, Service, disruption budget
(manager.md: Installation)."""

from dataclasses import dataclass

from captfctl.model.resource import Document

MANAGER = "captf-controller-manager"
SERVICE_ACCOUNT = "captf-manager"
USER_ID = 65532
HEALTH_PORT = 9440
METRICS_PORT = 8443
_LABELS = {"app.kubernetes.io/name": "captf", "control-plane": MANAGER}


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallOptions:
    """What `captfctl manifests` can be asked for.

    `watch_namespace` empty: all namespaces. `flags` are further flags of `captfctl manage`.
    """

    image: str
    namespace: str = "captf-system"
    replicas: int = 2
    watch_namespace: str = ""
    flags: tuple[str, ...] = ()


def namespace(options: InstallOptions) -> Document:
    """With the restricted Pod Security level, which the manager's own pods satisfy."""
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": options.namespace,
            "labels": {**_LABELS, "pod-security.kubernetes.io/enforce": "restricted"},
        },
    }


def service_account(options: InstallOptions) -> Document:
    """The account that the manager runs as."""
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": _metadata(SERVICE_ACCOUNT, options),
    }


def manager_user(options: InstallOptions) -> str:
    """The user name of the manager for an API server."""
    return f"system:serviceaccount:{options.namespace}:{SERVICE_ACCOUNT}"


def deployment(options: InstallOptions) -> Document:
    """Two replicas by default: one leads, the other takes over at once."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _metadata(MANAGER, options),
        "spec": {
            "replicas": options.replicas,
            "selector": {"matchLabels": _LABELS},
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1},
            },
            "template": {"metadata": {"labels": _LABELS}, "spec": _pod(options)},
        },
    }


def _pod(options: InstallOptions) -> Document:
    return {
        "serviceAccountName": SERVICE_ACCOUNT,
        "terminationGracePeriodSeconds": 30,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER_ID,
            "runAsGroup": USER_ID,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "tolerations": [
            {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"},
        ],
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": _LABELS},
            }
        ],
        "containers": [_container(options)],
        "volumes": [{"name": "tmp", "emptyDir": {}}],
    }


def _container(options: InstallOptions) -> Document:
    return {
        "name": "manager",
        "image": options.image,
        "args": _arguments(options),
        "env": [
            {"name": "CAPTF_MANAGER_IMAGE", "value": options.image},
            {"name": "SERVICE_ACCOUNT_NAME", "value": SERVICE_ACCOUNT},
            {
                "name": "POD_NAMESPACE",
                "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}},
            },
        ],
        "ports": [
            {"name": "health", "containerPort": HEALTH_PORT, "protocol": "TCP"},
            {"name": "metrics", "containerPort": METRICS_PORT, "protocol": "TCP"},
        ],
        "livenessProbe": _probe("/livez", delay=15, period=20),
        "readinessProbe": _probe("/readyz", delay=5, period=10),
        "resources": {
            "requests": {"cpu": "10m", "memory": "128Mi"},
            "limits": {"cpu": "500m", "memory": "512Mi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],  # noqa: S108 - inside the pod
    }


def _arguments(options: InstallOptions) -> list[str]:
    arguments = ["manage", "--leader-elect", f"--diagnostics-address=:{METRICS_PORT}"]
    if options.watch_namespace:
        arguments.append(f"--namespace={options.watch_namespace}")
    return [*arguments, *options.flags]


def _probe(path: str, *, delay: int, period: int) -> Document:
    return {
        "httpGet": {"path": path, "port": "health"},
        "initialDelaySeconds": delay,
        "periodSeconds": period,
    }


def metrics_service(options: InstallOptions) -> Document:
    """Where the metrics can be scraped."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata("captf-metrics", options),
        "spec": {
            "selector": _LABELS,
            "ports": [{"name": "metrics", "port": METRICS_PORT, "targetPort": "metrics"}],
        },
    }


def disruption_budget(options: InstallOptions) -> Document:
    """At most one manager is evicted at a time."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": _metadata(MANAGER, options),
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": _LABELS}},
    }


def _metadata(name: str, options: InstallOptions) -> Document:
    return {"name": name, "namespace": options.namespace, "labels": dict(_LABELS)}
