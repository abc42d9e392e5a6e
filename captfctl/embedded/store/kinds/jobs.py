"""Jobs: their pods' template and selector are fixed once they exist."""

from collections.abc import Iterator
from datetime import datetime

from captfctl.cluster.errors import Cause
from captfctl.embedded.store.kinds.pod_defaults import default_pod_spec
from captfctl.embedded.store.kinds.pods import check_pod_spec, not_negative
from captfctl.embedded.store.strategy import Typed
from captfctl.embedded.store.violations import immutable, required, type_name, unsupported
from captfctl.model.resource import Document

CONTROLLER_UID = "batch.kubernetes.io/controller-uid"
JOB_NAME = "batch.kubernetes.io/job-name"
_FIXED = ("completions", "selector", "template", "completionMode", "podFailurePolicy")
# What of a suspended Job's template may still change: where its pods are to run.
_SCHEDULING = ("affinity", "nodeSelector", "tolerations", "schedulingGates")


class JobStrategy(Typed):
    """Jobs."""

    has_status = True
    has_generation = True

    def default(self, document: Document) -> None:
        spec = document["spec"]
        template = spec["template"]
        default_pod_spec(template["spec"])
        if "completions" not in spec and "parallelism" not in spec:
            spec["completions"] = 1
        spec.setdefault("parallelism", 1)
        spec.setdefault("backoffLimit", 2**31 - 1 if "backoffLimitPerIndex" in spec else 6)
        spec.setdefault("completionMode", "NonIndexed")
        spec.setdefault("suspend", False)
        spec.setdefault("manualSelector", False)
        replacement = "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed"
        spec.setdefault("podReplacementPolicy", replacement)
        if labels := template["metadata"].get("labels"):
            metadata = document.setdefault("metadata", {})
            if not metadata.get("labels"):
                metadata["labels"] = dict(labels)

    def prepare_create(self, document: Document, now: datetime) -> None:
        super().prepare_create(document, now)
        spec, metadata = document["spec"], document["metadata"]
        if spec.get("manualSelector"):
            return
        labels = spec["template"]["metadata"].setdefault("labels", {})
        for key in (CONTROLLER_UID, "controller-uid"):
            labels[key] = metadata["uid"]
        for key in (JOB_NAME, "job-name"):
            labels[key] = metadata.get("name", "")
        spec["selector"] = {"matchLabels": {CONTROLLER_UID: metadata["uid"]}}

    def check(self, document: Document, old: Document | None, subresource: str) -> list[Cause]:
        spec = document["spec"]
        causes = list(_check_spec(spec)) if not subresource else []
        if old is not None and not subresource:
            causes += _check_change(spec, old["spec"])
        return causes


def _check_spec(spec: Document) -> Iterator[Cause]:
    yield from not_negative(
        spec,
        "spec",
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
    )
    if spec["completionMode"] not in ("NonIndexed", "Indexed"):
        options = ("NonIndexed", "Indexed")
        yield unsupported("spec.completionMode", spec["completionMode"], options)
    if spec.get("manualSelector") and not spec.get("selector"):
        yield required("spec.selector")
    pod = spec["template"]["spec"]
    yield from check_pod_spec(pod, "spec.template.spec")
    if pod["restartPolicy"] not in ("OnFailure", "Never"):
        yield required("spec.template.spec.restartPolicy", 'valid values: "OnFailure", "Never"')


def _check_change(spec: Document, old: Document) -> list[Cause]:
    causes = []
    for field in _FIXED:
        before, after = old.get(field), spec.get(field)
        if field == "template" and old.get("suspend"):
            before, after = _unscheduled(before), _unscheduled(after)
        # The value stays out of the message: a template may hold what is nobody's business.
        if before != after:
            causes.append(immutable(f"spec.{field}", type_name(after)))
    return causes


def _unscheduled(template: Document | None) -> Document:
    template = template or {}
    spec = {key: item for key, item in template.get("spec", {}).items() if key not in _SCHEDULING}
    return {"spec": spec}
