"""`TerraformClusterIdentity`: credentials that objects of allowed namespaces may use
(api.md: TerraformClusterIdentity)."""

from enum import StrEnum
from typing import Annotated, ClassVar

import msgspec

from captfctl.model.meta import ApiObject, LabelSelector, Part
from captfctl.model.schema import (
    DNS_LABEL,
    NOT_EMPTY,
    SET,
    Namespace,
    Schema,
    Subdomain,
    cel,
    rule,
)
from captfctl.model.status import Conditions


class IdentityType(StrEnum):
    SECRET = "Secret"


class SecretRef(Part):
    """The Secret with the credentials."""

    name: Subdomain
    namespace: Namespace


class AllowedNamespaces(Part):
    """Who may use the identity; nobody when it is not set."""

    SCHEMA: ClassVar[Schema] = {
        "x-kubernetes-validations": [
            cel(
                "has(self.list) || has(self.selector)",
                "{} is ambiguous: set list or selector, or leave allowedNamespaces out",
            )
        ]
    }

    names: Annotated[
        list[str],
        rule(
            minItems=1,
            maxItems=100,
            items={"minLength": 1, "maxLength": 63, "pattern": DNS_LABEL},
            **SET,
        ),
    ] = msgspec.field(name="list", default_factory=list)
    """Names of namespaces."""
    selector: LabelSelector | None = None
    """Labels of namespaces; {} allows every one."""


class TerraformClusterIdentitySpec(Part):
    SCHEMA: ClassVar[Schema] = {
        **NOT_EMPTY,
        "x-kubernetes-validations": [
            cel(
                "(has(self.type) && self.type != 'Secret') || has(self.secretRef)",
                "secretRef must be set for type Secret",
                ".secretRef",
            )
        ],
    }

    type: IdentityType | None = None
    """Secret when it is not set."""
    secret_ref: SecretRef | None = None
    required_keys: Annotated[
        list[str],
        rule(
            maxItems=64,
            items={"minLength": 1, "maxLength": 253, "pattern": "^[-._a-zA-Z0-9]+$"},
            **SET,
        ),
    ] = msgspec.field(default_factory=list)
    """Keys that the Secret must have."""
    allowed_namespaces: AllowedNamespaces | None = None


class TerraformClusterIdentityStatus(Part):
    SCHEMA: ClassVar[Schema] = NOT_EMPTY

    conditions: Conditions = msgspec.field(default_factory=list)
    namespaces: Annotated[list[Namespace], rule(maxItems=1000, **SET)] = msgspec.field(
        default_factory=list
    )
    """Namespaces that hold a copy of the credentials and use it."""
    secret_version: Annotated[str, rule(minLength=1, maxLength=253)] = ""
    """resourceVersion of the Secret with the credentials, when it was read last."""
    observed_generation: Annotated[int, rule(minimum=1)] = 0


class TerraformClusterIdentity(ApiObject):
    """Credentials that objects of allowed namespaces may use."""

    spec: TerraformClusterIdentitySpec = msgspec.field(default_factory=TerraformClusterIdentitySpec)
    status: TerraformClusterIdentityStatus = msgspec.field(
        default_factory=TerraformClusterIdentityStatus
    )
