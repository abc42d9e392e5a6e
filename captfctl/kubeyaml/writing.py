"""YAML as kubectl and every other reader takes it back."""

from typing import Any

import yaml

from captfctl.kubeyaml.scalars import plain

Json = Any

_BASE: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class _Dumper(_BASE):  # type: ignore[misc]
    """Puts in quotes what kubectl, or a reader of YAML 1.1, would take for something but text."""

    def ignore_aliases(self, _data: Any) -> bool:
        return True


def _represent_text(dumper: Any, text: str) -> Any:
    style = None
    if "\n" in text and not any(line != line.rstrip() for line in text.split("\n")):
        style = "|"
    elif _is_other(text):
        style = '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def _is_other(text: str) -> bool:
    try:
        return plain(text) is not text
    except ValueError:
        return True


_Dumper.add_representer(str, _represent_text)


def to_yaml(document: Json) -> str:
    """One document, its keys in their order."""
    text = yaml.dump(
        document, Dumper=_Dumper, sort_keys=False, width=4096, allow_unicode=True, indent=2
    )
    return str(text)
