"""The admission policy that refuses to delete what is protected (api.md: Deletion protection).

It sees the object alone. Protection that is inherited, and a deletion that was requested before the
field was set, are left to the controller, which holds them.
"""

from captfctl.install.policy_parts import has, in_force, text
from captfctl.model import keys
from captfctl.model.kinds import INFRASTRUCTURE, KINDS, VERSION
from captfctl.model.resource import Document

NAME = f"deletion-protection.{INFRASTRUCTURE}"

_FIELD = "spec.deletionProtection"
_OFF = '{"spec":{"deletionProtection":false}}'


def how_to_unprotect(resource: str, namespace: str, name: str) -> str:
    """The command that lets an object be deleted; `resource` as kubectl calls the kind."""
    return f"kubectl patch {resource} {name} -n {namespace} --type=merge -p '{_OFF}'"


def documents() -> list[Document]:
    """The policy and its binding."""
    rule = {
        "apiGroups": [INFRASTRUCTURE],
        "apiVersions": [VERSION],
        "operations": ["DELETE"],
        "resources": [kind.plural for kind in KINDS.values()],
    }
    spec: Document = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [
            {
                "expression": f"!({has('oldObject', _FIELD)} && oldObject.{_FIELD}) || {_MOVED}",
                "messageExpression": _message(),
                "message": f"{_FIELD} is true: set it to false before deleting the object",
                "reason": "Forbidden",
            }
        ],
    }
    return in_force(NAME, spec)


# `clusterctl move` deletes what it has moved; nothing is destroyed then.
_MOVED = (
    "has(oldObject.metadata.annotations) && "
    f"{text(keys.DELETE_FOR_MOVE)} in oldObject.metadata.annotations"
)


def _message() -> str:
    """CEL; what is replaced is in capitals, which names of objects never are."""
    command = text(how_to_unprotect("RESOURCE", "NAMESPACE", "NAME"))
    return (
        f"'{_FIELD} is true, so ' + request.kind.kind + ' ' + oldObject.metadata.namespace + '/' + "
        "oldObject.metadata.name + ' and its infrastructure are not deleted. To delete it, first: '"
        f" + {command}.replace('RESOURCE', request.resource.resource)"
        ".replace('NAMESPACE', oldObject.metadata.namespace)"
        ".replace('NAME', oldObject.metadata.name)"
    )
