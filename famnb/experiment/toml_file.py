"""An experiment or a load as a TOML file: read for `famnb run`, and written from a notebook.

`famnb run --help` shows one with every table.
"""

from __future__ import annotations

import inspect
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pydantic
import tomli_w

from famnb.errors import InvalidRequest
from famnb.experiment import scorers

if TYPE_CHECKING:
    from famnb.experiment.experiment import BaseExperiment

WRITTEN_SCORERS = ("exact", "contains", "numeric", "latency", "cost")
"""The scorers whose settings are their arguments, in their order."""
_SCORERS = {name: getattr(scorers, name) for name in scorers.__all__ if name[:1].islower()}


class Table(pydantic.BaseModel):
    """A table of the file, without fields that it does not have."""

    model_config = pydantic.ConfigDict(extra="forbid", use_attribute_docstrings=True)


class RunTable(Table):
    """What `Experiment.run` takes."""

    concurrency: int | None = None
    budget_usd: float | str | None = None
    retry_failed: bool = False


class CheckTable(Table):
    """What `Experiment.check` takes: the most and the least that metrics may be."""

    max: dict[str, float] = {}
    min: dict[str, float] = {}
    margin: float | str | dict[str, float | str] | None = None
    """How much worse than the baseline, the first variant unless named, each variant may be."""
    baseline: str | None = None
    slo: dict[str, float] | None = None
    level: float = 0.95


class AgainstTable(Table):
    """An earlier run that this one must not be worse than."""

    baseline: str | list[str]
    """A file that `Experiment.save_baseline` wrote, beside this one, or the name of an experiment in the ledger; or
    several, which are then its runs."""
    margin: dict[str, float | str] = {}
    """How much worse each metric may be: 0.05, in its unit, or "10%" of what it was."""
    slo: dict[str, float] | None = None
    level: float = 0.95


class ExperimentFile(Table):
    """An experiment, or a load, as TOML."""

    name: str
    prompts: str | list[str | dict[str, Any]]
    """A .csv or .jsonl file beside this one, or a list of texts or rows."""
    template: str | None = None
    repeats: int = 1
    warmup: int = 0
    seed: int = 0
    keep: str | list[str] = []
    primary: str | None = None
    """The metric that decides."""
    margin: float | str | dict[str, float | str] | None = None
    """How much worse a variant may be: 0.05 or "10%", of the primary metric or by metric."""
    looks: int | None = None
    """How many looks at growing data there will be."""
    fields: dict[str, Any] = {}
    """Fields of every request."""
    variants: list[dict[str, Any]] | dict[str, dict[str, Any]] = []
    grid: dict[str, Any] = {}
    """Lists of values of which every combination is a variant."""
    scorers: list[str | dict[str, dict[str, Any]]] = []
    """Names of `famnb.scorers`, or a name with its arguments."""
    client: dict[str, Any] = {}
    """What `famnb.connect` takes, such as `profile`; the key stays in its environment variable."""
    run: RunTable = RunTable()
    check: CheckTable | None = None
    against: AgainstTable | None = None
    load: dict[str, Any] | None = None
    """What `famnb.Load` takes, such as rate, duration and slo."""


def read_experiment_file(path: str | os.PathLike[str]) -> ExperimentFile:
    """Return what a file says; files that it names stand beside it. Raises InvalidRequest, naming the field."""
    file = Path(path).expanduser()
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8-sig"))
        parsed = ExperimentFile.model_validate(content)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"{file}: this is not TOML ({error})") from None
    except pydantic.ValidationError as error:
        faults = [
            f"{'.'.join(map(str, fault['loc']))}: "
            f"{'there is no such field' if fault['type'] == 'extra_forbidden' else fault['msg'].lower()}"
            for fault in error.errors()
        ]
        raise InvalidRequest(f"{file}: {'; '.join(dict.fromkeys(faults))}") from None
    if parsed.grid and parsed.variants:
        raise InvalidRequest(f"{file}: give [grid] or [[variants]], not both")
    folder = file.parent
    if isinstance(parsed.prompts, str) and (folder / parsed.prompts).is_file():
        parsed.prompts = str(folder / parsed.prompts)
    if parsed.against is not None:
        names = parsed.against.baseline
        parsed.against.baseline = [
            str(folder / name) if (folder / name).is_file() else name
            for name in (names if isinstance(names, list) else [names])
        ]
    return parsed


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
    table: dict[str, Any] = {
        "name": experiment.name,
        "prompts": [{"id": prompt.id, "prompt": prompt.text, **prompt.slots} for prompt in experiment.prompts],
        **{
            name: value
            for name, value, default in (
                ("repeats", experiment.repeats, 1),
                ("warmup", experiment.warmup, 0),
                ("seed", experiment.seed, 0),
                ("keep", sorted({name for prompt in experiment.prompts for name in prompt.slots}), []),
                ("primary", experiment.primary, None),
                ("margin", experiment.margin, None),
                ("looks", experiment.looks, None),
                ("scorers", list(map(_scorer_entry, experiment.scorers)), []),
                ("fields", experiment.fields, {}),
            )
            if value != default
        },
    }
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


def _scorer_entry(scorer: Any) -> dict[str, Any]:
    kind, *values = getattr(scorer, "settings", ("",))
    if kind not in WRITTEN_SCORERS:
        raise InvalidRequest(f"scorer {scorer.name!r} cannot stand in a file; a file has {', '.join(WRITTEN_SCORERS)}")
    parameters = inspect.signature(_SCORERS[kind]).parameters
    arguments = {**dict(zip(parameters, values, strict=False)), "name": scorer.name}
    return {kind: {name: value for name, value in arguments.items() if value != parameters[name].default}}
