"""The plan of an experiment: its cells, their keys, and the order in which they are run.

warm-ups ── repeat 0: prompt b, prompt a, … ── repeat 1: prompt a, prompt b, …
                      └ every variant, shuffled

Each block of one prompt and one repeat holds every variant, so that a service that slows down slows all alike, and a
run that is stopped has nearly the same of each.
"""

from __future__ import annotations

import dataclasses
import hashlib
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import pandas as pd

from famnb.endpoints import ENDPOINTS, Endpoints
from famnb.errors import InvalidRequest
from famnb.experiment.prompts import Prompt
from famnb.experiment.services import SIMULATED, key_at
from famnb.experiment.variants import Fields, Variant, build_request, endpoint_of
from famnb.frame.columns import plain_series, tag_column_name
from famnb.profiles import DEFAULT
from famnb.record.serialize import PROMPT_TAGS
from famnb.request import Request
from famnb.wire import lenient_json

MAX_TAG_CHARS = 200
"""Longer texts that are kept for scorers are in an experiment's frame, but not in the ledger."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cell:
    """One planned call."""

    key: str
    """Identifies it in the plan and in the ledger; see `cell_key`."""
    order: int
    """Its index in the order of calls, from 0."""
    prompt: Prompt
    variant: Variant
    repeat: int
    """Number of the repeat of the same request, from 0."""
    warmup: bool
    """Whether it only warms the service up: it is recorded like any other and left out of comparisons."""
    request: Request
    service: str = SIMULATED
    """The service that is to answer it, as `services.py` names it."""
    profile: str = DEFAULT
    """The profile of the client that is to send it."""

    def labels(self, experiment: str) -> dict[str, str]:
        """The labels of its call in the ledger."""
        client = {"client": self.variant.fields["client"]} if "client" in self.variant.fields else {}
        labels = {
            "experiment": experiment,
            "variant": self.variant.label,
            "cell": self.key,
            "prompt_id": self.prompt.id,
            "repeat": str(self.repeat),
            "warmup": str(self.warmup).lower(),
            **client,
        }
        # Longer texts are for scorers, and would swell every row.
        tags = {
            name: value
            for name, value in self.prompt.tags.items()
            if isinstance(value, bool | int | float) or (isinstance(value, str) and len(value) <= MAX_TAG_CHARS)
        }
        return {**labels, PROMPT_TAGS: lenient_json.encode(tags).decode()} if tags else labels


def cell_key(
    endpoint: str, body: Mapping[str, Any], *, repeat: int, warmup: bool = False, service: str = SIMULATED
) -> str:
    """The key of a cell, from its content and its service: equal in a plan and in what a ledger recorded of it.

    `body` is the request's JSON body; the key is 32 hexadecimal digits, then the service unless that is the simulation.
    Keys are stored, so that a change of this function would have every earlier experiment run again.
    """
    canonical = msgspec.json.encode([endpoint, body, repeat, warmup], order="sorted")
    return key_at(hashlib.blake2b(canonical, digest_size=16).hexdigest(), service)


def plan_cells(
    prompts: Sequence[Prompt],
    variants: Sequence[Variant],
    *,
    repeats: int,
    warmup: int,
    seed: int,
    shared: Fields,
    service_of: Callable[[Variant, str], str] = lambda _variant, _endpoint: SIMULATED,
    endpoints: Endpoints = ENDPOINTS,
    profile: str = DEFAULT,
) -> tuple[Cell, ...]:
    """Every cell, in order; `endpoints` and `profile` are those of variants without a client of their own.

    `service_of` gives the service that answers a variant's calls to an endpoint.
    Raises InvalidRequest if two cells would send the same request to the same service.
    """
    requests: dict[tuple[str, str], tuple[Request, dict[str, Any], str]] = {}
    seen: dict[str, tuple[str, str]] = {}
    for variant in variants:
        fields, served = {**shared, **variant.fields}, variant.endpoints(endpoints)
        fields["endpoint"] = endpoint_of(fields, served).name
        service = service_of(variant, fields["endpoint"])
        for prompt in prompts:
            request = build_request(prompt.text, fields, served)
            # Kept beside the request, since making the body is most of the work of a plan.
            body = request.body()
            key = cell_key(request.endpoint, body, repeat=0, service=service)
            if key in seen:
                first_prompt, first_variant = seen[key]
                raise InvalidRequest(
                    f"prompts {first_prompt!r} and {prompt.id!r} are the same; ask one of them more often with repeats="
                    if first_variant == variant.label
                    else f"variants {first_variant!r} and {variant.label!r} send the same request for prompt "
                    f"{prompt.id!r} to the same service; drop one of them"
                )
            seen[key] = prompt.id, variant.label
            requests[prompt.id, variant.label] = request, body, service
    entries = _order_calls(prompts, variants, repeats=repeats, warmup=warmup, seed=seed)
    cells = []
    for order, (prompt, variant, repeat, is_warmup) in enumerate(entries):
        request, body, service = requests[prompt.id, variant.label]
        cells.append(
            Cell(
                key=cell_key(request.endpoint, body, repeat=repeat, warmup=is_warmup, service=service),
                order=order,
                prompt=prompt,
                variant=variant,
                repeat=repeat,
                warmup=is_warmup,
                request=request,
                service=service,
                profile=variant.client.profile.name if variant.client else profile,
            )
        )
    return tuple(cells)


def plan_frame(cells: Sequence[Cell], variants: Sequence[Variant], *, shared: Fields) -> pd.DataFrame:
    """The plan as a frame, one row a cell, in order.

    The columns: order, cell, prompt_id, prompt, the tags of prompts, variant, endpoint, model, each field in which
    variants differ (`client` by name), repeat, warmup.
    """
    fields = {variant.label: {**shared, **variant.fields} for variant in variants}
    varying = varying_fields(variants)
    tags = dict.fromkeys(name for cell in cells for name in cell.prompt.tags)
    columns: dict[str, Any] = {
        "order": pd.array([cell.order for cell in cells], dtype="Int64"),
        "cell": pd.array([cell.key for cell in cells], dtype="string"),
        "prompt_id": pd.array([cell.prompt.id for cell in cells], dtype="string"),
        "prompt": pd.array([cell.prompt.text for cell in cells], dtype="string"),
        **{
            tag_column_name(name, others=varying): plain_series([cell.prompt.tags.get(name) for cell in cells])
            for name in tags
        },
        "variant": pd.Categorical([cell.variant.label for cell in cells], categories=list(fields)),
        "endpoint": pd.Categorical([cell.request.endpoint for cell in cells]),
        "model": pd.Categorical([model_of(cell.request) for cell in cells]),
    }
    for name in varying:
        if name not in columns:
            columns[name] = plain_series([fields[cell.variant.label].get(name) for cell in cells])
    columns["repeat"] = pd.array([cell.repeat for cell in cells], dtype="Int64")
    columns["warmup"] = pd.array([cell.warmup for cell in cells], dtype="boolean")
    return pd.DataFrame(columns)


def varying_fields(variants: Sequence[Variant]) -> list[str]:
    """The names of the fields in which variants differ, in the order in which they were given."""
    names = dict.fromkeys(name for variant in variants for name in variant.fields)
    first = variants[0].fields if variants else {}
    return [name for name in names if any(variant.fields.get(name) != first.get(name) for variant in variants)]


def model_of(request: Request) -> str:
    """The model that a request names."""
    return str(getattr(request, "model", ""))


def _order_calls(
    prompts: Sequence[Prompt], variants: Sequence[Variant], *, repeats: int, warmup: int, seed: int
) -> Iterator[tuple[Prompt, Variant, int, bool]]:
    """Yield prompt, variant, number of the repeat and whether it is a warm-up; these go over the first prompts."""
    for number in range(warmup):
        for variant in _shuffle(variants, f"{seed}/warmup/{number}"):
            yield prompts[number % len(prompts)], variant, number, True
    for repeat in range(repeats):
        for prompt in _shuffle(prompts, f"{seed}/prompts/{repeat}"):
            for variant in _shuffle(variants, f"{seed}/{prompt.id}/{repeat}"):
                yield prompt, variant, repeat, False


def _shuffle(items: Sequence[Any], seed: str) -> list[Any]:
    """Return the items in an order that the seed alone decides."""
    # Seeded with a text, which is hashed alike in every process; and each block on its own, so that a prompt that is
    # added later changes the order within no other block.
    return random.Random(seed).sample(items, len(items))  # noqa: S311 - an order, no secret
