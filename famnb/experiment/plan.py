"""The plan: every cell with its key and its place in the order; nothing is sent here.

warm-ups ── repeat 0: prompt b, prompt a, … ── repeat 1: prompt a, prompt b, …
                      └ every variant, shuffled

Each block of one prompt and one repeat holds every variant, so that a service that slows down slows all alike, and a
run that is stopped has nearly the same of each.
"""

from __future__ import annotations

import dataclasses
import hashlib
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import pandas as pd

from famnb.errors import InvalidRequest
from famnb.experiment.prompts import Prompt
from famnb.experiment.variants import Fields, Variant, place, requested
from famnb.request import Request


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cell:
    """One planned call."""

    key: str
    """What identifies it in the plan and in the ledger: `cell_key` of what is sent."""
    order: int
    """Its place in the order of calls, from 0."""
    prompt: Prompt
    variant: Variant
    repeat: int
    """Which repeat of the same request it is, from 0."""
    warmup: bool
    """Whether it only warms the service up; it is recorded like any other and left out of comparisons."""
    request: Request
    """What is sent."""

    def labels(self, experiment: str) -> dict[str, str]:
        """What its call is labelled with in the ledger."""
        return {
            "experiment": experiment,
            "variant": self.variant.label,
            "cell": self.key,
            "prompt_id": self.prompt.id,
            "repeat": str(self.repeat),
            "warmup": str(self.warmup).lower(),
        }


def cell_key(endpoint: str, body: Mapping[str, Any], *, repeat: int, warmup: bool = False) -> str:
    """What identifies a cell by its content alone: equal in a plan and in what a ledger recorded of it.

    `body` is the request's JSON body; the key is 32 hexadecimal digits.
    """
    canonical = msgspec.json.encode([endpoint, body, repeat, warmup], order="sorted")
    return hashlib.blake2b(canonical, digest_size=16).hexdigest()


def cells_of(
    prompts: Sequence[Prompt], variants: Sequence[Variant], *, repeats: int, warmup: int, seed: int, shared: Fields
) -> tuple[Cell, ...]:
    """Every cell in its order; InvalidRequest where two of them would be the same request."""
    requests = _requests(prompts, variants, shared)
    slots = [*_warmups(prompts, variants, warmup, seed), *_measured(prompts, variants, repeats, seed)]
    made = []
    for order, (prompt, variant, repeat, warms) in enumerate(slots):
        request, body = requests[prompt.id, variant.label]
        made.append(
            Cell(
                key=cell_key(request.endpoint, body, repeat=repeat, warmup=warms),
                order=order,
                prompt=prompt,
                variant=variant,
                repeat=repeat,
                warmup=warms,
                request=request,
            )
        )
    return tuple(made)


def plan_frame(cells: Sequence[Cell], variants: Sequence[Variant], *, shared: Fields) -> pd.DataFrame:
    """The plan as a frame, one row a cell: order, cell, prompt_id, prompt, variant, endpoint, model, every varied
    field, repeat, warmup.
    """
    fields = {variant.label: {**shared, **variant.fields} for variant in variants}
    columns: dict[str, Any] = {
        "order": pd.array([cell.order for cell in cells], dtype="Int64"),
        "cell": pd.array([cell.key for cell in cells], dtype="string"),
        "prompt_id": pd.array([cell.prompt.id for cell in cells], dtype="string"),
        "prompt": pd.array([cell.prompt.text for cell in cells], dtype="string"),
        "variant": pd.Categorical([cell.variant.label for cell in cells], categories=list(fields)),
        "endpoint": pd.Categorical([cell.request.endpoint for cell in cells]),
        "model": pd.Categorical([model_of(cell.request) for cell in cells]),
    }
    for name in varied(variants):
        if name not in columns:
            values = [fields[cell.variant.label].get(name) for cell in cells]
            columns[name] = pd.Series(values).convert_dtypes() if _plain(values) else pd.Series(values, dtype=object)
    columns["repeat"] = pd.array([cell.repeat for cell in cells], dtype="Int64")
    columns["warmup"] = pd.array([cell.warmup for cell in cells], dtype="boolean")
    return pd.DataFrame(columns)


def varied(variants: Sequence[Variant]) -> list[str]:
    """The fields in which variants differ, in the order in which they were named."""
    names = dict.fromkeys(name for variant in variants for name in variant.fields)
    return [name for name in names if any(one.fields.get(name) != variants[0].fields.get(name) for one in variants)]


def model_of(request: Request) -> str:
    """The model that a request names."""
    return str(getattr(request, "model", ""))


def _plain(values: Sequence[Any]) -> bool:
    return all(isinstance(value, str | bool | int | float | None) for value in values)


def _requests(
    prompts: Sequence[Prompt], variants: Sequence[Variant], shared: Fields
) -> dict[tuple[str, str], tuple[Request, dict[str, Any]]]:
    """Each prompt's request by each variant, and its body."""
    made: dict[tuple[str, str], tuple[Request, dict[str, Any]]] = {}
    seen: dict[str, tuple[str, str]] = {}
    for variant in variants:
        fields = {**shared, **variant.fields}
        at = place(fields)
        for prompt in prompts:
            request = requested(prompt.text, {**fields, "endpoint": at.name})
            body = request.body()
            key = cell_key(request.endpoint, body, repeat=0)
            if key in seen:
                raise InvalidRequest(_same(seen[key], (prompt.id, variant.label)))
            seen[key] = prompt.id, variant.label
            made[prompt.id, variant.label] = request, body
    return made


def _same(first: tuple[str, str], second: tuple[str, str]) -> str:
    if first[1] == second[1]:
        return f"prompts {first[0]!r} and {second[0]!r} are the same; ask one of them more often with repeats="
    return f"variants {first[1]!r} and {second[1]!r} send the same request for prompt {second[0]!r}; drop one of them"


_Slot = tuple[Prompt, Variant, int, bool]


def _warmups(prompts: Sequence[Prompt], variants: Sequence[Variant], warmup: int, seed: int) -> Iterator[_Slot]:
    """So many calls of every variant, over the first prompts."""
    for number in range(warmup):
        prompt = prompts[number % len(prompts)]
        for variant in _shuffled(variants, f"{seed}/warmup/{number}"):
            yield prompt, variant, number, True


def _measured(prompts: Sequence[Prompt], variants: Sequence[Variant], repeats: int, seed: int) -> Iterator[_Slot]:
    for repeat in range(repeats):
        for prompt in _shuffled(prompts, f"{seed}/prompts/{repeat}"):
            for variant in _shuffled(variants, f"{seed}/{prompt.id}/{repeat}"):
                yield prompt, variant, repeat, False


def _shuffled(items: Sequence[Any], seed: str) -> list[Any]:
    """The items in an order that the seed alone decides."""
    return random.Random(seed).sample(items, len(items))  # noqa: S311 - an order, no secret
