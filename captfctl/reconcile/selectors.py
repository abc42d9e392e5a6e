"""Label selectors as objects carry them (`metav1.LabelSelector`)."""

from collections.abc import Mapping

from captfctl.model.meta import LabelSelector, LabelSelectorRequirement


def matches(selector: LabelSelector, labels: Mapping[str, str]) -> bool:
    """Raises `ValueError` for a requirement that means nothing."""
    if any(labels.get(key) != value for key, value in selector.match_labels.items()):
        return False
    return all(_meets(term, labels) for term in selector.match_expressions)


def matches_everything(selector: LabelSelector) -> bool:
    """Whether the selector has no requirement at all."""
    return not selector.match_labels and not selector.match_expressions


def _meets(term: LabelSelectorRequirement, labels: Mapping[str, str]) -> bool:
    value = labels.get(term.key)
    if bool(term.values) != (term.operator in ("In", "NotIn")):
        raise ValueError(f"{term.operator} on {term.key} and its values do not fit")
    match term.operator:
        case "In":
            return value in term.values
        case "NotIn":
            return value not in term.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    raise ValueError(f"unknown operator {term.operator} on {term.key}")
