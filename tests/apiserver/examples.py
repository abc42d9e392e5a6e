"""One object of every kind that the API server serves, with a status where it has one."""

import copy
from dataclasses import dataclass, field

from tests.apiserver.conftest import WIDGETS, widget

IMAGE = "registry.example/i:1"


@dataclass(frozen=True)
class Example:
    """`status`: what a controller reports of the object; None: the kind has no status."""

    document: dict
    plural: str
    namespaced: bool = True
    status: dict | None = None
    more: dict = field(default_factory=dict)

    @property
    def kind(self) -> str:
        return self.document["kind"]

    @property
    def api_version(self) -> str:
        return self.document["apiVersion"]

    def collection(self, namespace: str) -> str:
        version = self.api_version
        base = f"/apis/{version}" if "/" in version else f"/api/{version}"
        return (
            f"{base}/namespaces/{namespace}/{self.plural}"
            if self.namespaced
            else (f"{base}/{self.plural}")
        )

    def named(self, name: str, namespace: str) -> dict:
        """The object under another name. A definition's name follows from what it defines."""
        made = copy.deepcopy(self.document)
        if self.kind == "CustomResourceDefinition":
            plural = name.replace("-", "")
            made["spec"]["group"] = "example.net"
            made["spec"]["names"] = {"kind": plural.capitalize(), "plural": plural}
            name = f"{plural}.example.net"
        made["metadata"] = {"name": name} | made.get("metadata", {})
        if self.namespaced:
            made["metadata"]["namespace"] = namespace
            for about in ("involvedObject", "regarding"):
                if about in made:
                    made[about]["namespace"] = namespace
        return made


def _of(api_version: str, kind: str, **content) -> dict:
    return {"apiVersion": api_version, "kind": kind, **content}


_TEMPLATE = {
    "metadata": {"labels": {"app": "a"}},
    "spec": {
        "restartPolicy": "Never",
        "serviceAccountName": "robot",
        "securityContext": {"runAsNonRoot": True, "fsGroup": 1000},
        "tolerations": [{"key": "mine", "operator": "Exists"}],
        "initContainers": [{"name": "first", "image": IMAGE, "command": ["true"]}],
        "containers": [
            {
                "name": "main",
                "image": IMAGE,
                "args": ["a", "b"],
                "env": [
                    {"name": "A", "value": "1"},
                    {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                    {"name": "C", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
                ],
                "envFrom": [{"secretRef": {"name": "s"}}],
                "ports": [{"containerPort": 80}],
                "resources": {"requests": {"cpu": "100m"}, "limits": {"memory": "1Gi"}},
                "readinessProbe": {"tcpSocket": {"port": 80}},
                "volumeMounts": [
                    {"name": "scratch", "mountPath": "/scratch"},
                    {"name": "all", "mountPath": "/all", "readOnly": True},
                ],
            }
        ],
        "volumes": [
            {"name": "scratch", "emptyDir": {"sizeLimit": "1Gi"}},
            {
                "name": "all",
                "projected": {
                    "sources": [
                        {"secret": {"name": "s", "items": [{"key": "k", "path": "k"}]}},
                        {"configMap": {"name": "c"}},
                        {"serviceAccountToken": {"path": "token"}},
                    ]
                },
            },
        ],
    },
}

_CONDITION = {
    "type": "Ready",
    "status": "False",
    "reason": "NotYet",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}

_POD_STATUS = {
    "phase": "Running",
    "hostIP": "127.0.0.1",
    "podIP": "127.0.0.1",
    "podIPs": [{"ip": "127.0.0.1"}],
    "startTime": "2026-01-01T00:00:00Z",
    "conditions": [{"type": "Ready", "status": "False"}],
    "initContainerStatuses": [
        {
            "name": "first",
            "image": IMAGE,
            "ready": True,
            "restartCount": 0,
            "imageID": "i",
            "state": {"terminated": {"exitCode": 0, "reason": "Completed"}},
        }
    ],
    # As a writer would have it that leaves out what is false, zero or empty.
    "containerStatuses": [{"name": "main", "state": {"running": {}}}],
}

_REFERENCE = {"kind": "Pod", "name": "p", "apiVersion": "v1"}
_RULE = {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]}
_RBAC = "rbac.authorization.k8s.io/v1"
_SUBJECT = {"kind": "ServiceAccount", "name": "robot", "namespace": "default"}


def _role_ref(kind: str) -> dict:
    return {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": "r"}


_ADMISSION = "admissionregistration.k8s.io/v1"
_ADMISSION_RULE = {
    "apiGroups": ["example.io"],
    "apiVersions": ["v1"],
    "operations": ["CREATE"],
    "resources": ["widgets"],
}

EXAMPLES = (
    Example(_of("v1", "ConfigMap", data={"a": "1"}, binaryData={"b": "dg=="}), "configmaps"),
    Example(_of("v1", "Secret", data={"k": "dg=="}, type="Opaque"), "secrets"),
    Example(
        _of("v1", "ServiceAccount", imagePullSecrets=[{"name": "pull"}]),
        "serviceaccounts",
    ),
    Example(_of("v1", "Namespace"), "namespaces", False, {"phase": "Active"}),
    Example(
        _of("v1", "Node", spec={"unschedulable": True}),
        "nodes",
        False,
        {
            "capacity": {"cpu": "2", "memory": "4Gi"},
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "conditions": [{"type": "Ready", "status": "True"}],
            "nodeInfo": {"kubeletVersion": "v1"},
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "images": [{"names": [IMAGE], "sizeBytes": 5}],
        },
    ),
    Example(_of("v1", "Pod", **_TEMPLATE), "pods", status=_POD_STATUS),
    Example(
        _of(
            "v1",
            "Event",
            involvedObject=_REFERENCE,
            reason="Tried",
            message="it was tried",
            type="Normal",
            count=1,
            firstTimestamp="2026-01-01T00:00:00Z",
        ),
        "events",
    ),
    Example(
        _of(
            "events.k8s.io/v1",
            "Event",
            regarding=_REFERENCE,
            eventTime="2026-01-01T00:00:00.123456Z",
            reportingController="example.io/c",
            reportingInstance="c-1",
            action="Try",
            reason="Tried",
            note="it was tried",
            type="Warning",
        ),
        "events",
    ),
    Example(
        _of("batch/v1", "Job", spec={"template": _TEMPLATE, "backoffLimit": 0, "suspend": True}),
        "jobs",
        status={
            "active": 1,
            "ready": 0,
            "startTime": "2026-01-01T00:00:00Z",
            "conditions": [{"type": "Suspended", "status": "True"}],
            "uncountedTerminatedPods": {},
        },
    ),
    Example(
        _of(
            "coordination.k8s.io/v1",
            "Lease",
            spec={
                "holderIdentity": "me",
                "leaseDurationSeconds": 15,
                "renewTime": "2026-01-01T00:00:00.123456Z",
            },
        ),
        "leases",
    ),
    Example(_of(_RBAC, "Role", rules=[_RULE]), "roles"),
    Example(
        _of(_RBAC, "ClusterRole", rules=[_RULE, {"verbs": ["get"], "nonResourceURLs": ["/x"]}]),
        "clusterroles",
        False,
    ),
    Example(
        _of(_RBAC, "RoleBinding", roleRef=_role_ref("Role"), subjects=[_SUBJECT]), "rolebindings"
    ),
    Example(
        _of(
            _RBAC,
            "ClusterRoleBinding",
            roleRef=_role_ref("ClusterRole"),
            subjects=[_SUBJECT, {"kind": "User", "name": "somebody"}],
        ),
        "clusterrolebindings",
        False,
    ),
    Example(
        _of(
            _ADMISSION,
            "ValidatingAdmissionPolicy",
            spec={
                "failurePolicy": "Ignore",
                "matchConstraints": {"resourceRules": [_ADMISSION_RULE]},
                "matchConditions": [{"name": "large", "expression": "object.spec.size > 99"}],
                "variables": [{"name": "size", "expression": "object.spec.size"}],
                "validations": [
                    {"expression": "variables.size < 1", "messageExpression": "'too large'"}
                ],
            },
        ),
        "validatingadmissionpolicies",
        False,
        {"observedGeneration": 1, "typeChecking": {}},
    ),
    Example(
        _of(
            _ADMISSION,
            "ValidatingAdmissionPolicyBinding",
            spec={
                "policyName": "not-there",
                "validationActions": ["Warn", "Audit"],
                "matchResources": {"namespaceSelector": {"matchLabels": {"a": "b"}}},
            },
        ),
        "validatingadmissionpolicybindings",
        False,
    ),
    Example(
        {key: value for key, value in WIDGETS.items() if key != "metadata"},
        "customresourcedefinitions",
        False,
        {"conditions": [_CONDITION]},
    ),
    Example(
        {
            key: value
            for key, value in widget("", size=1, hosts=[{"ip": "1"}]).items()
            if key != "metadata"
        },
        "widgets",
        status={"phase": "Ready", "conditions": [_CONDITION]},
    ),
)
