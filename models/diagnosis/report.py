"""What a diagnosis says, as plain data."""

from __future__ import annotations

import html
import math
from dataclasses import asdict, dataclass, field
from typing import Any

from .growth import Growth
from .lines import Source
from .operands import Operand

FINITE, BENIGN, BROKEN = "finite", "benign", "broken"


@dataclass(frozen=True)
class Health:
    """A variable's gradient: how many elements are what (`size` in all), and the largest finite
    magnitude. `state` is "finite", "inf", "nan", "nan and inf", or "unconnected" when the loss does
    not depend on the variable, "not computed" when the step failed before."""

    state: str
    size: int = 0
    nan: int = 0
    positive_inf: int = 0
    negative_inf: int = 0
    zero: int = 0
    largest: float = 0.0

    @property
    def finite(self) -> bool:
        """Whether no element is Inf or NaN."""
        return self.state in ("finite", "unconnected", "not computed")

    def __str__(self) -> str:
        return self.state


@dataclass(frozen=True)
class Step:
    """One operation on the way from a cause to what it reached; `repeats` operations that follow
    one another on the same line are told as one."""

    op: str
    phase: str
    source: Source | None
    nan: int
    inf: int
    size: int
    largest: float
    inputs: tuple[Any, ...]
    repeats: int = 1


@dataclass(frozen=True)
class Origin:
    """A cause: the operation whose inputs were all finite and whose output was not.

    `index` is its first offending output element, `inputs` and `output` are the numbers there
    (`operands` says more of each), `count` of `size` elements offend, `reaches` names the variables
    and "loss". `differentiates` is the forward operation of a backward one. `name` is the variable
    whose value came in bad; `path` leads to the first thing reached; `growth` is set when gradients
    grew steadily up to here.
    """

    op: str
    phase: str
    mechanism: str
    circumstances: tuple[str, ...]
    source: Source | None
    index: tuple[int, ...]
    inputs: tuple[Any, ...]
    output: Any
    count: int
    reaches: tuple[str, ...]
    size: int = 0
    dtype: str = ""
    differentiates: str | None = None
    name: str | None = None
    operands: tuple[Operand, ...] = ()
    places: tuple[tuple[int, ...], ...] = ()
    path: tuple[Step, ...] = ()
    growth: Growth | None = None


@dataclass(frozen=True)
class Diagnosis:
    """Why a loss or its gradients are not finite, or that they are.

    `verdict` is "finite", "benign" (non-finite values exist and reach neither the loss nor a
    gradient) or "broken"; `origins` come strongest first; `benign` lists what does no harm.
    `operations` ran; `through_time` follows the gradient's size along a repeated structure;
    `spared` says of each variable whose gradient is finite in a broken step why it is.
    """

    verdict: str
    loss: float | None
    variables: dict[str, Health]
    origins: tuple[Origin, ...] = ()
    explanation: str = ""
    remedies: tuple[str, ...] = ()
    benign: tuple[Origin, ...] = ()
    operations: int = 0
    through_time: Growth | None = None
    notes: tuple[str, ...] = field(default=())
    spared: dict[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The diagnosis as JSON-safe data; non-finite numbers become "nan", "inf", "-inf"."""
        plain: dict[str, Any] = _plain(asdict(self))
        return plain

    def by_reason(self) -> dict[str, list[str]]:
        """The spared variables, those with the same reason together."""
        grouped: dict[str, list[str]] = {}
        for name, why in self.spared.items():
            grouped.setdefault(why, []).append(name)
        return grouped

    def __str__(self) -> str:
        lines = [f"{self.verdict}: {self.explanation}"]
        for number, origin in enumerate(self.origins, 1):
            lines += ["", f"{number}. {_title(origin)}", *(f"   {t}" for t in _details(origin))]
        if self.spared:
            lines += ["", "Spared, whose gradient"]
            lines += [f"  - {', '.join(names)}: {why}" for why, names in self.by_reason().items()]
        if self.remedies:
            lines += ["", "What to change:", *(f"  - {text}" for text in self.remedies)]
        if self.benign:
            lines += ["", f"Harmless non-finite values: {len(self.benign)}"]
            lines += [f"  - {_title(origin)}" for origin in self.benign]
        return "\n".join([*lines, *self.notes])

    def _repr_html_(self) -> str:
        parts = [f"<p><b>{html.escape(self.verdict)}</b>: {html.escape(self.explanation)}</p>"]
        for origin in self.origins:
            details = "".join(f"<li>{html.escape(t)}</li>" for t in _details(origin))
            parts.append(f"<p>{html.escape(_title(origin))}</p><ul>{details}</ul>")
        if self.remedies:
            items = "".join(f"<li>{html.escape(text)}</li>" for text in self.remedies)
            parts.append(f"<p>What to change</p><ul>{items}</ul>")
        if self.benign:
            items = "".join(f"<li>{html.escape(_title(o))}</li>" for o in self.benign)
            parts.append(
                f"<details><summary>Harmless non-finite values</summary><ul>{items}</ul></details>"
            )
        return "<div>" + "".join(parts) + "</div>"


def _title(origin: Origin) -> str:
    extra = f" ({', '.join(origin.circumstances)})" if origin.circumstances else ""
    return f"{origin.op}, {origin.phase}: {origin.mechanism}{extra}"


def _details(origin: Origin) -> list[str]:
    details = []
    if origin.source is not None:
        details.append(str(origin.source))
    numbers = ", ".join(number(v) for v in origin.inputs)
    place = f"at {list(origin.index)}" if origin.index else "for the scalar"
    details.append(f"{place}: {numbers} → {number(origin.output)}; {origin.count} of {origin.size}")
    if origin.reaches:
        details.append("reaches " + ", ".join(origin.reaches))
    return details


def number(value: Any) -> str:
    """A number as people read it: −Inf, NaN, 0, 3.4e38."""
    if isinstance(value, float):
        if math.isnan(value):
            return "NaN"
        if math.isinf(value):
            return "Inf" if value > 0 else "−Inf"
        return f"{value:.7g}".replace("-", "−")
    return str(value)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    return str(value) if isinstance(value, complex) else value
