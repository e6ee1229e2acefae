"""Which numbers of a message a configuration selects, and what they are called."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from trace_memory_ros.files.strict import ConfigError
from trace_memory_ros.streams.base import Field, StreamType

Select = tuple[str, ...] | Mapping[str, Any]


class Selected(NamedTuple):
    """A selected number. name: the field's, or the one that it was given. given: whether it was given one."""

    name: str
    field: Field
    given: bool = False

    @property
    def output(self) -> str:
        """Its name as a policy's output."""
        return self.name if self.given else self.field.output_name


def frozen(select: Any) -> Any:
    """A selection's lists as tuples, so that nothing can be changed afterwards; None as nothing."""
    if isinstance(select, Mapping):
        return {key: frozen(item) for key, item in select.items()}
    return tuple(select) if isinstance(select, list) else () if select is None else select


def selected(kind: StreamType, select: object, where: str) -> tuple[Selected, ...]:
    """What `select` names of a type's fields, in order. Raises ConfigError naming `where`.

    A list names fields or groups of them: `[linear.x, force]`. In a mapping, a list stands for a group's members,
    `{position: [elbow]}`, and anything else gives a field a name, `{width: 0}`. None selects what is usual.
    """
    if select in (None, (), [], {}):
        if not kind.usual:
            raise ConfigError(f"{where}.select is missing: {kind.name} has no fields that are usually meant; list some")
        select = kind.usual
    found: list[Selected] = []
    if isinstance(select, Mapping):
        for name, item in select.items():
            if isinstance(item, (list, tuple)):
                found += [Selected(f.name, f) for member in item for f in _fields(kind, f"{name}.{member}", where)]
            else:
                found.append(_named(kind, str(name), item, where))
    elif isinstance(select, (list, tuple)):
        found += [Selected(field.name, field) for item in select for field in _fields(kind, item, where)]
    else:
        raise ConfigError(f"{where}.select = {select!r}: must be a list of fields, or a mapping")
    if not found:
        raise ConfigError(f"{where}.select = {select!r} names no field: list some, or leave it out")
    for name in {one.name for one in found}:
        if sum(one.name == name for one in found) > 1:
            raise ConfigError(f"{where}.select names {name!r} more than once")
    return tuple(found)


def _named(kind: StreamType, name: str, item: object, where: str) -> Selected:
    fields = _fields(kind, item, where)
    if len(fields) != 1:
        raise ConfigError(f"{where}.select: {name!r} names {len(fields)} fields, {item!r}: name each of them")
    return Selected(name, fields[0], True)


def _fields(kind: StreamType, item: object, where: str) -> tuple[Field, ...]:
    if isinstance(item, bool) or not isinstance(item, (str, int)) or item == "":
        raise ConfigError(f"{where}.select: {item!r} is no field's name")
    try:
        return kind.fields(str(item))
    except ConfigError as error:
        raise ConfigError(f"{where}.select: {error}") from error
