"""Rules for the labels and annotations of what is made from a template.

What a server refuses on an object is refused on its template: nothing could be made from it.
"""

from captfctl.install.policy_parts import Rule, has, text

_NAME = "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_SUBDOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_KEY = f"^({_SUBDOMAIN}/)?{_NAME}$"
_VALUE = f"^({_NAME})?$"
_LONGEST_PREFIX = 253
_KEY_WANTED = (
    "is not a valid key: write [PREFIX/]NAME, NAME of at most 63 letters, digits, - _ and ., "
    "PREFIX a DNS name"
)
_VALUE_WANTED = "is not a valid value: at most 63 letters, digits, - _ and ., or empty"


def template_metadata_rules(path: str) -> tuple[Rule, ...]:
    """Those of the labels and annotations at `path`."""
    labels, annotations = f"{path}.labels", f"{path}.annotations"
    value = f"object.{labels}[item].matches({text(_VALUE)})"
    return (
        _rule("labelKeys", labels, _sound_key("item"), _KEY_WANTED),
        _rule("labelValues", labels, value, _VALUE_WANTED),
        # As servers do: the case of an annotation's prefix is not looked at.
        _rule("annotationKeys", annotations, _sound_key("item.lowerAscii()"), _KEY_WANTED),
    )


def _sound_key(key: str) -> str:
    return f"({key}.matches({text(_KEY)}) && {key}.indexOf('/') <= {_LONGEST_PREFIX})"


def _rule(name: str, path: str, sound: str, wanted: str) -> Rule:
    return Rule(
        name=name,
        items=f"{has('object', path)} ? object.{path}.filter(item, !{sound}) : []",
        field=f"{text(path + '[')} + item.replace('\\n', '\\\\n') + ']'",
        message=text(wanted),
    )
