"""Which objects of a collection a request is about."""

from collections.abc import Collection as Some
from dataclasses import dataclass

from captfctl.cluster.errors import BadRequest
from captfctl.embedded.store.collection import Record
from captfctl.embedded.store.selectors import (
    FieldSelector,
    LabelSelector,
    parse_fields,
    parse_labels,
)

_ALWAYS = ("metadata.name", "metadata.namespace")


@dataclass(frozen=True, slots=True)
class Selection:
    """What a list or a watch selects by."""

    namespace: str
    labels: LabelSelector
    fields: FieldSelector

    @property
    def everything(self) -> bool:
        """Nothing but the namespace restricts it."""
        return not self.labels.requirements and not self.fields.requirements

    def matches(self, record: Record) -> bool:
        """Whether the object is selected."""
        if self.namespace and record.namespace != self.namespace:
            return False
        if self.labels.requirements and not self.labels.matches(record.labels):
            return False
        if not self.fields.requirements:
            return True
        return self.fields.matches(lambda field: field_of(record, field))


def field_of(record: Record, field: str) -> str:
    """The text of a field that objects can be selected by."""
    if field == "metadata.name":
        return record.name
    if field == "metadata.namespace":
        return record.namespace
    return record.fields.get(field, "")


def select(namespace: str, labels: str, fields: str, selectable: Some[str]) -> Selection:
    """Raises `BadRequest` for a selector that cannot be read or a field nobody can select by."""
    selector = parse_fields(fields)
    for field in selector.fields:
        if field not in _ALWAYS and field not in selectable:
            raise BadRequest(f"field label not supported: {field}")
    return Selection(namespace, parse_labels(labels), selector)
