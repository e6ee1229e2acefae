"""Dataclasses back from the plain data that JSON holds."""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

from trace_memory_ros.files.strict import ConfigError, nearest

T = TypeVar("T")
SCALARS: dict[Any, Any] = {int: int, float: (int, float), str: str, bool: bool}
WORDS = {int: "integer", float: "number", str: "text", bool: "truth value"}


class PlainDataError(ConfigError):
    """Data that is not what a dataclass of this version holds; the message names the field and the remedy."""


def read(cls: type[T], data: object, where: str) -> T:
    """A dataclass from what `dataclasses.asdict` made of it, nested ones too, lists for tuples.

    Raises PlainDataError naming unknown or missing fields.
    """
    if not isinstance(data, Mapping):
        raise PlainDataError(f"{where} is {type(data).__name__}, not a mapping: make it again")
    hints = typing.get_type_hints(cls)
    known = [f.name for f in fields(cls)]  # type: ignore[arg-type]
    if unknown := sorted(set(data) - set(known)):
        raise PlainDataError(f"{where} has the unknown key {unknown[0]!r}; {nearest(unknown[0], known)}")
    values = {name: _value(hints[name], item, f"{where}.{name}") for name, item in data.items()}
    try:
        return cls(**values)
    except TypeError as error:
        raise PlainDataError(f"{where}: {error}: of another version, make it again") from error


def check_types(cls: type[Any], values: Mapping[str, Any], where: str) -> None:
    """Whether values are what the dataclass's fields of those names say, as far as they are plain numbers and text.

    Raises PlainDataError naming one that is not. Fields of other types, or whose types only a type checker can see, are
    left to the dataclass.
    """
    try:
        hints = typing.get_type_hints(cls)
    except NameError:
        return
    for name, value in values.items():
        union = typing.get_origin(hints[name]) in (typing.Union, types.UnionType)
        parts = typing.get_args(hints[name]) if union else (hints[name],)
        plain = [part for part in parts if part in SCALARS]
        optional = types.NoneType in parts
        if len(plain) + optional < len(parts) or (optional and value is None) or any(_fits(p, value) for p in plain):
            continue
        wanted = [f"{'an' if part is int else 'a'} {WORDS[part]}" for part in plain] + ["null"] * optional
        raise PlainDataError(f"{where}: {name} = {value!r}: must be {' or '.join(wanted)}")


def _fits(scalar: Any, value: object) -> bool:
    return isinstance(value, SCALARS[scalar]) and (scalar is bool or not isinstance(value, bool))


def _value(hint: Any, item: Any, where: str) -> Any:
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return None if item is None else _value(next(p for p in parts if p is not type(None)), item, where)
    if origin is tuple:
        if not isinstance(item, list | tuple):
            raise PlainDataError(f"{where} is {type(item).__name__}, not a list: make it again")
        return tuple(_value(parts[0], one, f"{where}[{i}]") for i, one in enumerate(item))
    if hint in SCALARS and not _fits(hint, item):
        raise PlainDataError(f"{where} = {item!r}: must be {'an' if hint is int else 'a'} {WORDS[hint]}")
    if origin is Mapping and not isinstance(item, Mapping):
        raise PlainDataError(f"{where} = {item!r}: must be a mapping")
    if is_dataclass(hint):
        return read(typing.cast("type[Any]", hint), item, where)
    return item
