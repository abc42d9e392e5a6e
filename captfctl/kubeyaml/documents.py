"""The documents of a text, divided as kubectl divides them, with the line of every field.

A text that begins with `{` is a row of JSON objects; when it goes on as something else, the rest is
YAML. YAML is cut at lines that begin with `---`, and each part is one document. Where kubectl would
ignore a part of a file without a word (a second document in a part, all but the last of equal
keys), or round a number, the text is refused instead.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

import yaml

from captfctl.kubeyaml.building import Builder, Parsed, Problem, TextError
from captfctl.kubeyaml.scalars import Scalar, json_number, plain, plain_key, surprise

_TAG = "tag:yaml.org,2002:"
_BYTE_ORDER_MARK = "\ufeff"
_LOOKED_AT = 4096
"""Characters in which kubectl looks for the `{` of JSON."""

_JSON_SPACE = " \t\r\n"
_JSON_SPACES = frozenset(_JSON_SPACE)
_BLANK = re.compile(r"[^\S\n]*\n?")
_SEPARATOR = re.compile(r"^---([^\n]*)\n?", re.MULTILINE)
_INNER_MARK = re.compile(rf"(?:^|[\n\r\x85\u2028\u2029]){_BYTE_ORDER_MARK}")
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:\n]|[^\s{}\[\],:"]+')
_WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None}
_TYPES: dict[str, type | tuple[type, ...]] = {
    "int": int,
    "float": (int, float),
    "bool": bool,
    "null": type(None),
}
_NO_TAG = "this tag is not supported: put text that begins with ! in quotes"
_PARSER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml, whose translation kubectl uses: both accept the same texts. It is fast, too."""


def documents(text: str, problems: list[Problem]) -> Iterator[Parsed]:
    """The documents of `text`; what is wrong with them goes to `problems`.

    An empty document has the value None. Documents before and after a broken one are still given.
    """
    text = text.removeprefix(_BYTE_ORDER_MARK)
    builder = Builder(problems)
    position, line = 0, 1
    if text[:_LOOKED_AT].lstrip().startswith("{"):
        count = 0
        while (end := _end_of_json(text, position)) is not None:
            yield from _guarded(builder, problems, _json_events(text[position:end], line, builder))
            line += text.count("\n", position, end)
            position, count = end, count + 1
        rest = text[position:].lstrip(_JSON_SPACE)
        if not rest:
            return
        if count > 1:
            line += text.count("\n", position, len(text) - len(rest))
            problems.append(Problem(line, "", "this is not JSON, as all before it is"))
            return
        if blank := _BLANK.match(text, position):
            line += blank[0].count("\n")
            position = blank.end()
    for part, first_line in _parts(text, position, line, problems):
        yield from _guarded(builder, problems, _yaml_events(part, first_line, builder))


def _guarded(
    builder: Builder, problems: list[Problem], parsed: Iterator[Parsed]
) -> Iterator[Parsed]:
    try:
        yield from parsed
    except TextError as error:
        problems.append(Problem(error.line, "", error.message))
        builder.reset()


def _end_of_json(text: str, position: int) -> int | None:
    """Where the JSON value ends that begins at or after `position`; None when there is none."""
    while text[position : position + 1] in _JSON_SPACES:
        position += 1
    try:
        return int(_JSON.raw_decode(text, position)[1])
    except ValueError:
        return None
    except RecursionError:
        return len(text)  # refused for its nesting by what reads it


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


_JSON = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=_no_constant)


def _json_events(text: str, line: int, builder: Builder) -> Iterator[Parsed]:
    """`text` is one JSON value."""
    builder.begin()
    for match in _TOKEN.finditer(text):
        token = match[0]
        match token[0]:
            case "\n":
                line += 1
            case "{":
                builder.open({}, line, None)
            case "[":
                builder.open([], line, None)
            case "}" | "]":
                builder.close()
            case "," | ":":
                pass
            case '"' if builder.wants_key:
                builder.key(_json_text(token, line, builder), line)
            case '"':
                builder.scalar(_json_text(token, line, builder), line)
            case _:
                builder.scalar(_json_scalar(token, line, builder), line)
    if parsed := builder.end():
        yield parsed


def _json_text(token: str, line: int, builder: Builder) -> str:
    if "\\" not in token:
        return token[1:-1]
    text = str(json.loads(token))
    if any("\ud800" <= character <= "\udfff" for character in text):
        builder.problem(line, "an escape stands for half of a character")
        return ""
    return text


def _json_scalar(token: str, line: int, builder: Builder) -> Scalar:
    if token in _WORDS:
        return _WORDS[token]
    try:
        return json_number(token)
    except ValueError as error:
        builder.problem(line, str(error))
        return None


def _parts(
    text: str, position: int, line: int, problems: list[Problem]
) -> Iterator[tuple[str, int]]:
    """What stands between the separators from `position`, in `line`, on; each with its first line.

    A separator with nothing before it belongs to what follows it.
    """
    start = position
    for match in _SEPARATOR.finditer(text, position):
        after = match[1].strip()
        if after and not after.startswith("#"):
            at = line + text.count("\n", position, match.start())
            message = "kubectl takes nothing but a comment after ---: begin a new line"
            problems.append(Problem(at, "", message))
        if position < match.start():
            yield _part(text[position : match.start()], first=position == start), line
            line += text.count("\n", position, match.end())
            position = match.end()
    yield _part(text[position:], first=position == start), line


def _part(text: str, *, first: bool) -> str:
    """Files that begin with a byte order mark can be put together to one."""
    text = text if first else text.removeprefix(_BYTE_ORDER_MARK)
    # kubectl adds a line break, too: the value of a | that ends here ends with it.
    return text if text.endswith("\n") else text + "\n"


def _yaml_events(text: str, line: int, builder: Builder) -> Iterator[Parsed]:
    """`text` begins in `line` and holds one document, or none."""
    if not text.strip():
        return
    if _BYTE_ORDER_MARK in text and (mark := _INNER_MARK.search(text)):
        at = line + text.count("\n", 0, mark.end())
        raise TextError(at, "a byte order mark (U+FEFF) stands in the middle of a document")
    parser = _PARSER(text)
    try:
        count = 0
        while parser.check_event():
            event = parser.get_event()
            at = event.start_mark.line + line
            if isinstance(event, yaml.DocumentStartEvent):
                count += 1
                if count > 1:
                    raise TextError(at, "kubectl ignores this document: put a line --- before it")
                builder.begin()
            elif isinstance(event, yaml.DocumentEndEvent):
                if parsed := builder.end():
                    yield parsed
            else:
                _take(event, at, builder)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        context = f" ({error.context})" if error.context else ""
        at = line + min(mark.line, text.count("\n") - 1) if mark else line
        raise TextError(at, f"this is not YAML: {error.problem}{context}") from None
    except yaml.YAMLError as error:
        position = getattr(error, "position", None)
        at = line + text.count("\n", 0, position) if isinstance(position, int) else line
        reason = getattr(error, "reason", "") or error
        raise TextError(at, f"this is not YAML: {reason}") from None
    finally:
        parser.dispose()


def _take(event: Any, line: int, builder: Builder) -> None:
    match event:
        case yaml.ScalarEvent() if builder.wants_key:
            _key(event, line, builder)
        case yaml.ScalarEvent():
            value, odd = _scalar(event, line, builder)
            builder.scalar(value, line, anchor=event.anchor, odd=odd)
        case yaml.AliasEvent():
            builder.alias(event.anchor, line)
        case yaml.MappingStartEvent():
            _check_tag(event, "map", line, builder)
            builder.open({}, line, event.anchor)
        case yaml.SequenceStartEvent():
            _check_tag(event, "seq", line, builder)
            builder.open([], line, event.anchor)
        case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
            builder.close()


def _check_tag(event: Any, wanted: str, line: int, builder: Builder) -> None:
    if event.tag not in (None, "!", _TAG + wanted):
        builder.problem(line, _NO_TAG)


def _key(event: Any, line: int, builder: Builder) -> None:
    if event.value == "<<" and not event.style and event.implicit[0]:
        builder.merge_key(line)
        return
    key: str = event.value
    odd = ""
    try:
        value = key if event.style and not event.tag else _resolved(event)[0]
        if value is not key:
            key = plain_key(key)
            odd = surprise(event.value, value)
    except ValueError as error:
        builder.problem(line, f"key {event.value!r} {error}", builder.container_path)
    builder.key(key, line, anchor=event.anchor, odd=odd)


def _scalar(event: Any, line: int, builder: Builder) -> tuple[Scalar, str]:
    try:
        return _resolved(event)
    except ValueError as error:
        builder.problem(line, str(error))
        return None, ""


def _resolved(event: Any) -> tuple[Scalar, str]:
    """The value of a scalar, and how it is odd. Raises `ValueError` saying what is wrong."""
    text: str = event.value
    if event.tag in (None, "!"):
        if event.style or event.tag == "!":
            return text, ""
        value = plain(text)
        return value, "" if value is text else surprise(text, value)
    kind = event.tag.removeprefix(_TAG)
    if kind == "str":
        return text, ""
    if kind not in _TYPES:
        raise ValueError(_NO_TAG)
    value = plain(text)
    if not isinstance(value, _TYPES[kind]) or (kind != "bool" and isinstance(value, bool)):
        raise ValueError(f"the value is not what tag !!{kind} says")
    return value, ""
