"""One table of parameters per node: what is declared, described, bounded and documented comes from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, Literal, TypeVar

from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor, SetParametersResult
from rclpy.exceptions import ParameterException
from rclpy.node import Node
from rclpy.parameter import Parameter

Changes = Literal["start", "configure", "live"]
"""When a value may change: at process start alone, while the node is unconfigured, or at any time."""

P = TypeVar("P")

# What several nodes say of a parameter that they share.
AUTOSTART = "Configure and activate by itself at start; the process ends with exit code 1 when that fails."
RELIABILITY = "Quality of service of the input subscriptions: best_effort for live sensors, reliable for lock-step."
CHECKPOINT = "Checkpoint folder, or the name of one that this package ships, such as origin_trace."
REALTIME = (
    "Real-time priority (SCHED_FIFO) of executor and middleware, so that a busy machine delays neither; 0 for none."
)
HANG_TIMEOUT = (
    "How long the executor of an active node may stand still before its process ends, to be started again; 0 for ever."
)
DIAGNOSTICS_RATE = "Rate of diagnostic_msgs/DiagnosticArray on /diagnostics."


class WrongParameter(ValueError):
    """A value given at start that a node cannot take; the message names it and what is wanted."""


@dataclass(frozen=True)
class Spec:
    """What people need to know about one parameter beside its type and default."""

    description: str
    unit: str
    changes: Changes
    minimum: float | None
    maximum: float | None
    choices: tuple[str, ...]

    @property
    def limits(self) -> str:
        """The allowed values in words, empty when every value of the type is allowed."""
        if self.choices:
            return ", ".join(self.choices)
        if self.minimum is None:
            return ""
        return f"{self.minimum:g} .. {self.maximum:g}"


def parameter(
    default: Any,
    description: str,
    *,
    unit: str = "",
    changes: Changes = "configure",
    limits: tuple[float, float] | None = None,
    choices: tuple[str, ...] = (),
) -> Any:
    """A dataclass field that carries its `Spec`."""
    low, high = limits or (None, None)
    return field(default=default, metadata={"spec": Spec(description, unit, changes, low, high, choices)})


def realtime_priority() -> Any:
    """The field of a node that may run at real-time priority."""
    return parameter(0, REALTIME, limits=(0, 99))


def hang_timeout() -> Any:
    """The field of a node that ends rather than hang."""
    return parameter(30.0, HANG_TIMEOUT, unit="s", limits=(0.0, 3600.0))


def specs(table: type) -> dict[str, tuple[Any, Spec]]:
    """Parameter name -> (default, spec), in declared order. Raises `TypeError` for a field without a spec."""
    out: dict[str, tuple[Any, Spec]] = {}
    for item in fields(table):
        spec = item.metadata.get("spec")
        if spec is None or item.default is MISSING:
            raise TypeError(f"{table.__name__}.{item.name} is not declared with parameter(): it has no description")
        out[item.name] = (item.default, spec)
    return out


def validate(table: object) -> None:
    """Check a parameter dataclass against its specs. Raises `ValueError` naming the parameter, value and remedy."""
    for name, (default, spec) in specs(type(table)).items():
        problem = _problem(getattr(table, name), default, spec)
        if problem:
            raise ValueError(f"parameter {name} {problem}")


def _problem(value: Any, default: Any, spec: Spec) -> str:
    if type(value) is not type(default):
        return f"= {value!r} is a {type(value).__name__}; give a {type(default).__name__}, for example {default!r}"
    if spec.choices and value not in spec.choices:
        return f"= {value!r} is unknown; choose one of {', '.join(spec.choices)}"
    if spec.minimum is not None and spec.maximum is not None and not spec.minimum <= value <= spec.maximum:
        return f"= {value} {spec.unit} is outside {spec.limits} {spec.unit}".rstrip()
    return ""


def declare(node: Node, table: type) -> None:
    """Declare every parameter of `table` on `node`, with description, limits and the read-only flag.

    Raises `WrongParameter` for a value given at start of another type or outside its limits.
    """
    for name, (default, spec) in specs(table).items():
        try:
            node.declare_parameter(name, default, _descriptor(default, spec))
        except ParameterException as error:
            limits = f" in {spec.limits}" if spec.minimum is not None else ""
            wanted = f"give a {type(default).__name__}{limits}, for example {default!r}"
            raise WrongParameter(f"{str(error).removesuffix(f': {name}')}: parameter {name}: {wanted}") from error


def _descriptor(default: Any, spec: Spec) -> ParameterDescriptor:
    text = f"{spec.description} [{spec.unit}]" if spec.unit else spec.description
    descriptor = ParameterDescriptor(
        description=text, additional_constraints=spec.limits, read_only=spec.changes == "start"
    )
    if spec.minimum is not None and spec.maximum is not None:
        if isinstance(default, float):
            limits = FloatingPointRange(from_value=float(spec.minimum), to_value=float(spec.maximum))
            descriptor.floating_point_range = [limits]
        else:
            descriptor.integer_range = [IntegerRange(from_value=int(spec.minimum), to_value=int(spec.maximum))]
    return descriptor


def read(node: Node, table: type[P]) -> P:
    """The node's current values as a validated `table`. Raises `ValueError` naming a bad one."""
    values: Mapping[str, Any] = {name: node.get_parameter(name).value for name in specs(table)}
    out = table(**values)
    validate(out)
    return out


def review(table: type, changed: list[Parameter[Any]], configured: bool) -> SetParametersResult:
    """Judge a request to set parameters; a refusal says why and what to do."""
    known = specs(table)
    for item in changed:
        if item.name not in known:
            continue
        default, spec = known[item.name]
        problem = _problem(item.value, default, spec)
        if problem:
            return SetParametersResult(successful=False, reason=f"parameter {item.name} {problem}")
        if configured and spec.changes != "live":
            reason = (
                f"parameter {item.name} can change only while the node is unconfigured: deactivate and clean up first"
            )
            return SetParametersResult(successful=False, reason=reason)
    return SetParametersResult(successful=True)
