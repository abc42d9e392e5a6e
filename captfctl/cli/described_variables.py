"""Variables of described objects that their modules do not declare, and such as they miss
(module-contract.md: Variables that a module declares)."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from captfctl.cluster.door import Door
from captfctl.embedded.described import BadInput, Described, DescribedSet, Violation
from captfctl.errors import Source
from captfctl.model.core import ConfigMap, Secret
from captfctl.model.kinds import INFRASTRUCTURE, KINDS, Role
from captfctl.model.resource import Resource
from captfctl.model.resources import (
    TERRAFORM_CLUSTER_TEMPLATES,
    TERRAFORM_MACHINE_POOL_TEMPLATES,
    TERRAFORM_MACHINE_TEMPLATES,
)
from captfctl.model.terraform import TerraformSpec
from captfctl.reconcile.inputs import read_source
from captfctl.reconcile.kinds import RULES
from captfctl.terraform.contract.errors import VariablesError
from captfctl.terraform.contract.module_variables import SchemaOf
from captfctl.terraform.contract.variables import (
    SourceRef,
    merge_variables,
    parse_inline,
    source_refs,
)
from captfctl.terraform.contract.variables_schema import variable_problems

_TEMPLATES: dict[str, tuple[Resource[Any], Role]] = {
    TERRAFORM_CLUSTER_TEMPLATES.kind: (TERRAFORM_CLUSTER_TEMPLATES, Role.CLUSTER),
    TERRAFORM_MACHINE_TEMPLATES.kind: (TERRAFORM_MACHINE_TEMPLATES, Role.MACHINE),
    TERRAFORM_MACHINE_POOL_TEMPLATES.kind: (TERRAFORM_MACHINE_POOL_TEMPLATES, Role.MACHINE_POOL),
}
_SECTIONS = ("data", "stringData", "binaryData")


class _User(NamedTuple):
    """What names a module, and gives it variables. `path` leads to its spec. `may_get_more`: a
    ClusterClass may patch further ones into the template."""

    role: Role
    spec: TerraformSpec
    path: str
    may_get_more: bool = False


def check_variables(described: DescribedSet, door: Door, schema_of: SchemaOf) -> None:
    """Raise `BadInput` with every variable that the run of a described object would be refused for.

    `door` leads to the store that has the described objects, and no others.
    """
    violations: list[Violation] = []
    for item in described:
        user = _user(item, door)
        if user is not None:
            violations += _Check(described, door, item, user).violations(schema_of)
    if violations:
        raise BadInput(violations)


def _user(item: Described, door: Door) -> _User | None:
    kind, place = item.resource.kind, (item.name, item.namespace)
    if item.resource.group != INFRASTRUCTURE:
        return None
    if kind in RULES:
        return _User(KINDS[kind].role, door.get(RULES[kind].resource, *place).spec, "spec")
    template = _TEMPLATES.get(kind)
    if template is None:
        return None
    resource, role = template
    spec = door.get(resource, *place).spec.template.spec
    return _User(role, spec, "spec.template.spec", may_get_more=True)


class _Check:
    """One object's variables: its own, and those of the sources that are described too."""

    def __init__(self, described: DescribedSet, door: Door, item: Described, user: _User) -> None:
        self._described, self._item, self._user = described, item, user
        refs = source_refs(user.spec.variables_from)
        read = [(ref, read_source(door, ref, item.namespace)) for ref in refs]
        self._sources = [(ref, source) for ref, source in read if source is not None]
        self._partial = user.may_get_more or len(self._sources) < len(read)

    def violations(self, schema_of: SchemaOf) -> Iterator[Violation]:
        spec, role = self._user.spec, self._user.role
        schema = schema_of(spec.source.image, role)
        if schema is None:
            return
        try:
            variables = merge_variables(role, spec.variables, self._sources)
        except VariablesError:
            return  # told by the pass, as it is where no module is known
        for problem in variable_problems(schema, variables, partial=self._partial):
            place, field = self._place(problem.variable)
            yield Violation(place, problem.message, field)

    def _place(self, name: str) -> tuple[Source, str]:
        """Where the variable gets its value; the variables as a whole for one that gets none."""
        own = f"{self._user.path}.variables"
        if name not in parse_inline(self._user.spec.variables):
            for ref, source in reversed(self._sources):
                if name in _keys(source):
                    return self._place_in(ref, name)
            return self._item.place(own), own
        return self._item.place(f"{own}.{name}"), f"{own}.{name}"

    def _place_in(self, ref: SourceRef, name: str) -> tuple[Source, str]:
        paths = [f"{section}.{name}" for section in _SECTIONS]
        places = [
            self._described.source_of(ref.kind, self._item.namespace, ref.name, path)
            for path in paths
        ]
        # A section that is not written is placed where its object begins: above every key.
        found = zip((place for place in places if place is not None), paths, strict=False)
        return max(found, key=lambda one: one[0].line)


def _keys(source: Secret | ConfigMap) -> set[str]:
    more = source.binary_data if isinstance(source, ConfigMap) else {}
    return set(source.data) | set(more)
