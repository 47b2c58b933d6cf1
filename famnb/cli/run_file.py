"""An experiment or a load as a TOML file, read for `famnb run`, whose help shows one with every table."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any

import pydantic

from famnb.api import Client, connect
from famnb.errors import InvalidRequest
from famnb.experiment.toml_file import make_scorer
from famnb.experiment.variants import grid
from famnb.experiment_api import Experiment
from famnb.load import Load
from famnb.load.arrivals import Arrivals

OF_LOADS = frozenset({"name", "prompts", "seed", "fields", "client", "run", "load"})
"""The fields of a file that say something of a load; the others are an experiment's."""


class Table(pydantic.BaseModel):
    """A table of the file, without fields that it does not have."""

    model_config = pydantic.ConfigDict(extra="forbid", use_attribute_docstrings=True)


class RunTable(Table):
    """What `Experiment.run` takes; a load takes the budget alone."""

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


class LoadTable(Table):
    """What `famnb.Load` takes; what is left out has its default there."""

    rate: float | list[float] | None = None
    """Calls a second, or calls at once in a closed load, a step each."""
    arrivals: Arrivals | None = None
    trace: str | None = None
    """A .csv or .jsonl file beside this one, of calls as they came elsewhere."""
    input_tokens: float | list[float] | dict[str, Any] | None = None
    """The length of prompts: a number, several to draw from, or a distribution of scipy.stats, such as
    { distribution = "lognorm", s = 0.5, scale = 200 }."""
    output_tokens: float | list[float] | dict[str, Any] | None = None
    """The most that answers may be long, in the same ways."""
    turns: int | None = None
    """Calls of one talk, each of which repeats the turns before it."""
    duration: float | str | None = None
    """Of a step: seconds, or a text such as "30s"."""
    warmup: float | str | None = None
    drain: float | str | None = None
    slo: dict[str, float] | None = None
    """The most that columns of `famnb.calls` may be, such as { ttft_s = 0.5 }."""
    share: float | None = None
    """The share of calls that are to keep the slo."""


class RunFile(Table):
    """An experiment, or a load, as TOML."""

    name: str
    prompts: str | list[str | dict[str, Any]]
    """A .csv, .jsonl, .json, .parquet or .xlsx file beside this one, or a list of texts or rows."""
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
    load: LoadTable | None = None


def read_run_file(path: str | os.PathLike[str]) -> RunFile:
    """Return what a file says; files that it names stand beside it. Raises InvalidRequest, naming the field."""
    file = Path(path).expanduser()
    try:
        parsed = RunFile.model_validate(tomllib.loads(file.read_text(encoding="utf-8-sig")))
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

    def find(name: str) -> str:
        return str(file.parent / name) if (file.parent / name).is_file() else name

    if isinstance(parsed.prompts, str):
        parsed.prompts = find(parsed.prompts)
    if parsed.against is not None:
        names = parsed.against.baseline
        parsed.against.baseline = list(map(find, names if isinstance(names, list) else [names]))
    if parsed.load is not None:
        # Ignored, a limit would be one that is never broken.
        unused = [*(parsed.model_fields_set - OF_LOADS), *(parsed.run.model_fields_set - {"budget_usd"})]
        if unused:
            raise InvalidRequest(
                f"{file}: {', '.join(sorted(unused))}: not of a load, which is held to the slo and share of its table"
            )
        if parsed.load.trace is not None:
            parsed.load.trace = find(parsed.load.trace)
    return parsed


def make_client(file: RunFile) -> Client:
    """Return the client that a file asks for. Raises InvalidRequest."""
    if any(name.endswith("key") for name in file.client):
        raise InvalidRequest("client: a key does not belong into a file; put it into its environment variable")
    try:
        return connect(**file.client)
    except TypeError as error:
        raise InvalidRequest(f"client: {error}; expected what famnb.connect takes") from None


def make_experiment(file: RunFile, client: Client) -> Experiment:
    """Return the experiment of a file. Raises InvalidRequest."""
    return Experiment(
        file.prompts,
        grid(**{"client": client, **file.grid}) if file.grid else file.variants or None,
        scorers=[make_scorer(item) for item in file.scorers],
        client=client,
        **file.model_dump(
            include={"name", "repeats", "warmup", "seed", "template", "keep", "primary", "margin", "looks"}
        ),
        **file.fields,
    )


def make_load(file: RunFile, table: LoadTable, client: Client) -> Load:
    """Return the load of a file. Raises InvalidRequest."""
    arguments = {**file.fields, **table.model_dump(exclude_none=True)}
    return Load(file.prompts, name=file.name, client=client, seed=file.seed, **arguments)
