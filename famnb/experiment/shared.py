"""An experiment with all that was recorded of it as JSON, to be shared in a file, and the same read again."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from famnb.errors import InvalidRequest
from famnb.experiment.judge import Judge
from famnb.experiment.plan import Cell, plan_cells
from famnb.experiment.prompts import Prompt
from famnb.experiment.score import Score, Span
from famnb.experiment.services import split_key
from famnb.experiment.variants import Variant
from famnb.profiles import find_endpoints
from famnb.record import ratings
from famnb.record.shared import SharedRecord, share_calls
from famnb.reply import Reply
from famnb.secret_patterns import mask_keys

if TYPE_CHECKING:
    from famnb.experiment.experiment import BaseExperiment


KEPT = ("name", "fields", "repeats", "warmup", "seed", "replayed", "primary", "looks")
"""The attributes of an experiment that a file has under the same names, as they are."""


class SharedScorer(msgspec.Struct, frozen=True):
    """A scorer that has scored, known by its scores alone."""

    name: str
    key: str
    span: Span | None = None

    def score(self, _reply: Reply, _prompt: Prompt) -> Score:
        """Return no score: how it scores is not in the file."""
        return Score(None, "the file has the scores of this scorer, not the scorer")


class SharedExperiment(msgspec.Struct, frozen=True, tag_field="kind", tag="experiment"):
    """What a file holds of an experiment."""

    name: str
    prompts: list[Prompt]
    variants: dict[str, dict[str, Any]]
    """The fields of each variant by its label; a client of its own is there by its name alone."""
    fields: dict[str, Any]
    repeats: int
    warmup: int
    seed: int
    profile: str
    cells: list[str]
    """The keys of the planned cells, in order."""
    replayed: dict[str, str]
    scorers: list[SharedScorer]
    judges: list[Judge]
    record: SharedRecord
    is_matrix: bool = False
    """Whether a matrix shows it."""
    primary: str | None = None
    margin: float | str | dict[str, float | str] | None = None
    looks: int | None = None
    looked: list[tuple[int, int]] = []
    """The looks so far, as sizes and plans."""

    def plan_variants(self) -> tuple[Variant, ...]:
        """Return the variants as those of an experiment."""
        return tuple(Variant(label, fields) for label, fields in self.variants.items())

    def plan_cells(self) -> tuple[Cell, ...]:
        """Return the cells under the keys that they were recorded by. Raises InvalidRequest."""
        cells = plan_cells(
            self.prompts,
            self.plan_variants(),
            repeats=self.repeats,
            warmup=self.warmup,
            seed=self.seed,
            shared=self.fields,
            # Variants that differ in their clients alone are different services.
            service_of=lambda variant, _endpoint: variant.label,
            endpoints=find_endpoints(self.profile),
            profile=self.profile,
        )
        if len(cells) != len(self.cells):
            raise InvalidRequest("the file is damaged: it does not hold all cells of the plan")
        return tuple(
            dataclasses.replace(cell, key=key, service=split_key(key)[1])
            for cell, key in zip(cells, self.cells, strict=True)
        )


def share(experiment: BaseExperiment, *, is_matrix: bool = False) -> bytes:
    """Return an experiment with what was recorded of it as JSON; empty if it has what no file can hold.

    These are fields that are Python objects, such as functions as tools, and clients of several profiles. Raises
    LedgerError if the ledger cannot be read.
    """
    profiles = {cell.profile for cell in experiment.cells}
    if len(profiles) > 1:
        return b""
    frame, ledger = experiment.frame(), experiment.ledger
    call_ids = [*frame["call_id"].dropna(), *experiment.judge_calls()["call_id"]]
    shared = SharedExperiment(
        **{name: getattr(experiment, name) for name in KEPT},
        prompts=[
            dataclasses.replace(prompt, slots=_plain(prompt.slots), tags=_plain(prompt.tags))
            for prompt in experiment.prompts
        ],
        variants={variant.label: dict(variant.fields) for variant in experiment.variants},
        profile=profiles.pop(),
        cells=[cell.key for cell in experiment.cells],
        scorers=[
            SharedScorer(scorer.name, str(getattr(scorer, "key", scorer.name)), getattr(scorer, "span", None))
            for scorer in experiment.scorers
            if not isinstance(scorer, Judge)
        ],
        judges=[
            dataclasses.replace(scorer, client=None, endpoints={})
            for scorer in experiment.scorers
            if isinstance(scorer, Judge)
        ],
        record=SharedRecord(()),
        is_matrix=is_matrix,
        margin=dict(experiment.margin) if isinstance(experiment.margin, Mapping) else experiment.margin,
        looked=ratings.read_looks(ledger, experiment.name),
    )
    try:
        # The calls are masked already, in their own way: what came is compressed.
        head = msgspec.json.decode(mask_keys(msgspec.json.encode(shared).decode()), type=SharedExperiment)
    except (TypeError, msgspec.MsgspecError):
        return b""
    record = share_calls(ledger, call_ids, votes=ratings.read_votes(ledger, experiment.name))
    return msgspec.json.encode(msgspec.structs.replace(head, record=record))


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values of a prompt that JSON can hold: those that only a scorer uses are compared by their texts."""
    return {
        name: value if isinstance(value, str | int | float | bool | None) else str(value)
        for name, value in values.items()
    }


def read_shared(data: bytes) -> SharedExperiment:
    """Return what `share` has made JSON of. Raises InvalidRequest."""
    try:
        return msgspec.json.decode(data, type=SharedExperiment)
    except msgspec.MsgspecError as error:
        raise InvalidRequest(f"the file is damaged: its experiment cannot be read ({error})") from None
