"""An experiment of a notebook as a TOML file for `famnb run`, and scorers as such a file names them."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tomli_w

from famnb.errors import InvalidRequest
from famnb.experiment import scorers

if TYPE_CHECKING:
    from famnb.experiment.experiment import BaseExperiment

WRITTEN_SCORERS = ("exact", "contains", "numeric")
"""The scorers whose settings are their arguments, in their order."""
DEFAULTS = {"repeats": 1, "warmup": 0, "seed": 0, "primary": None, "margin": None, "looks": None}
"""The settings of an experiment that are written unless they are these."""
_SCORERS = {name: getattr(scorers, name) for name in scorers.__all__ if name[:1].islower()}


def make_scorer(item: str | Mapping[str, Mapping[str, Any]]) -> Any:
    """Return the scorer that an entry of a file names. Raises InvalidRequest."""
    if isinstance(item, str):
        item = {item: {}}
    ((name, arguments),) = item.items() if len(item) == 1 else [("", {})]
    if name not in _SCORERS:
        raise InvalidRequest(f"scorers: expected one of {', '.join(_SCORERS)}, got {item!r:.80}")
    try:
        return _SCORERS[name](**arguments)
    except TypeError as error:
        raise InvalidRequest(f"scorers: {name}: {error}") from None


def write_experiment_file(experiment: BaseExperiment, path: str | os.PathLike[str]) -> Path:
    """Write an experiment as a file for `famnb run`; return its path.

    Scorers of one's own, judges and variants with clients of their own cannot stand in a file: InvalidRequest.
    """
    written_scorers = []
    for scorer in experiment.scorers:
        kind, *values = getattr(scorer, "settings", ("",))
        if kind not in WRITTEN_SCORERS:
            raise InvalidRequest(
                f"scorer {scorer.name!r} cannot stand in a file; a file has {', '.join(WRITTEN_SCORERS)}"
            )
        parameters = inspect.signature(_SCORERS[kind]).parameters
        arguments = {**dict(zip(parameters, values, strict=False)), "name": scorer.name}
        entry = {name: value for name, value in arguments.items() if value != parameters[name].default}
        written_scorers.append({kind: entry})
    settings = {name: getattr(experiment, name) for name in DEFAULTS}
    table: dict[str, Any] = {
        "name": experiment.name,
        "prompts": [{"id": prompt.id, "prompt": prompt.text, **prompt.slots} for prompt in experiment.prompts],
        **{name: value for name, value in settings.items() if value != DEFAULTS[name]},
    }
    kept = sorted({name for prompt in experiment.prompts for name in prompt.slots})
    collections = {"keep": kept, "scorers": written_scorers, "fields": experiment.fields}
    table |= {name: values for name, values in collections.items() if values}
    for variant in experiment.variants:
        if variant.client is not None:
            raise InvalidRequest(f"variant {variant.label!r} has a client of its own, which cannot stand in a file")
        table.setdefault("variants", {})[variant.label] = dict(variant.fields)
    file = Path(path).expanduser()
    try:
        file.write_text(tomli_w.dumps(table), encoding="utf-8")
    except TypeError as error:
        raise InvalidRequest(f"{experiment.name} has a value that TOML cannot hold: {error}") from None
    return file
