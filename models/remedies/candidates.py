"""What is tried, and in which order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from ..errors import BadInput
from ..scenarios.contract import Scenario
from ..scenarios.knobs import Config, KnobValue

MOST_PAIRS = 6  # of those that are tried because nothing mends alone


@dataclass(frozen=True)
class Candidate:
    """One remedy, or two at once: their names are joined by “+”.

    `said` is the reasoning behind it, `proposed` tells whether the diagnosis proposed it.
    """

    name: str
    title: str
    knobs: Mapping[str, KnobValue]
    said: str
    answers_another_question: bool
    proposed: bool = False


def candidates(scenario: Scenario, config: Config, proposed: Sequence[str] = ()) -> list[Candidate]:
    """Each remedy by itself, then the pairs that the scenario names.

    What `proposed` names comes first, in its order (BadInput for an unknown name); then those that
    need no new graph, because they answer soonest. A remedy that would change nothing is left out,
    and so is one whose knobs do not matter beside the others.
    """
    single = [
        Candidate(
            r.name, r.title, r.knobs, r.reason, r.answers_another_question, r.name in proposed
        )
        for r in scenario.remedies
    ]
    by_name = {candidate.name: candidate for candidate in single}
    for name in proposed:
        if name not in by_name:
            known = ", ".join(by_name)
            raise BadInput(f"{scenario.name} has no remedy “{name}”; it has {known}.", "proposed")
    pairs = [pair(by_name[a], by_name[b]) for a, b in scenario.together]
    singles = [c for c in single if changes_something(scenario, config, c)]
    singles.sort(key=lambda c: _stages(scenario, config, c))
    singles.sort(key=lambda c: proposed.index(c.name) if c.proposed else len(proposed))
    return singles + [c for c in pairs if _both_matter(scenario, config, c, by_name)]


def pair(a: Candidate, b: Candidate) -> Candidate:
    return Candidate(
        f"{a.name}+{b.name}",
        f"{a.title} and {b.title}",
        {**a.knobs, **b.knobs},
        f"{a.said} {b.said}",
        a.answers_another_question or b.answers_another_question,
        a.proposed and b.proposed,
    )


def further_pairs(
    scenario: Scenario, config: Config, failed: Mapping[str, int], tried: Sequence[Candidate]
) -> list[Candidate]:
    """Pairs to try when nothing mended alone: what broke may have more than one cause.

    `failed` maps the name of each single remedy that failed to the step at which it did. Two of
    them make a pair if they change different knobs and all of these matter together. Those that
    lived longest come first, and at most `MOST_PAIRS` are tried.
    """
    by_name = {candidate.name: candidate for candidate in tried}
    done = {frozenset(name.split("+")) for name in by_name}
    found = [
        (failed[a] + failed[b], pair(by_name[a], by_name[b]))
        for a, b in combinations(failed, 2)
        if not by_name[a].knobs.keys() & by_name[b].knobs.keys() and frozenset((a, b)) not in done
    ]
    found = [(lived, c) for lived, c in found if _both_matter(scenario, config, c, by_name)]
    found.sort(key=lambda entry: -entry[0])
    return [c for _, c in found[:MOST_PAIRS]]


def changes_something(scenario: Scenario, config: Config, candidate: Candidate) -> bool:
    """Whether a knob that matters would stand differently."""
    new = config | dict(candidate.knobs)
    return any(
        new[name] != config[name] and scenario.knob(name).matters(new) for name in candidate.knobs
    )


def _both_matter(
    scenario: Scenario, config: Config, both: Candidate, by_name: Mapping[str, Candidate]
) -> bool:
    """Whether each half still changes something where the other half is in force."""
    a, b = (by_name[name] for name in both.name.split("+"))
    return changes_something(scenario, config | dict(a.knobs), b) and changes_something(
        scenario, config | dict(b.knobs), a
    )


def _stages(scenario: Scenario, config: Config, candidate: Candidate) -> tuple[bool, bool]:
    """Whether it needs another graph, and whether it starts from other data or weights."""
    changed = {name for name, value in candidate.knobs.items() if config[name] != value}
    stages = {scenario.knob(name).stage for name in changed}
    return "graph" in stages, "data" in stages
