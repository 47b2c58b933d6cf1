"""What a ledger knows of calls like the planned ones: their sizes and times, by model, endpoint and settings."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pandas as pd

from famnb.endpoints import ENDPOINTS
from famnb.experiment.resume import ANSWERED
from famnb.frame.calls import calls
from famnb.frame.filters import Moment
from famnb.record import Ledger

FEWEST = 5
"""Calls below which a history says too little; the next step is taken then."""
MOST_CUT = 0.05
"""Of a history of other settings, the share of answers that may have been cut short by a lower cap."""
NEWEST = 500
"""Of a history, so many of the newest calls are used."""
_READ = 5_000
"""Calls that are looked at."""
_COLUMNS = (
    "call_id",
    "started_at",
    "endpoint",
    "model",
    "status",
    "simulated",
    "e2e_s",
    "input_tokens",
    "output_tokens",
    "input_tokens_source",
    "output_tokens_source",
)

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """Past calls that stand for planned ones, one a place."""

    told: str
    """Which calls, in words."""
    ratio: Floats
    """Input tokens per character sent."""
    output: Floats
    """Output tokens."""
    e2e_s: Floats
    """Time to the end of the reply."""
    ratio_guessed: Flags
    """Whether the input tokens were estimated from the text's length."""
    output_guessed: Flags
    """Whether the output tokens were."""

    @property
    def n(self) -> int:
        """How many calls."""
        return len(self.output)


def history(ledger: Ledger, models: Iterable[str], *, until: Moment | None = None) -> pd.DataFrame:
    """The newest answered calls of these models, and of others where one of them has few; newest last.

    The columns: some of `famnb.calls`, then `input_chars` (characters sent, messages framed) and `settings` (a digest
    of the request without what the user asks). `until` leaves out calls that started then or later.
    LedgerError if the ledger cannot be read.
    """
    wanted = sorted(set(models))
    found = calls(ledger, model=wanted, status=ANSWERED, until=until, limit=_READ, columns=_COLUMNS)
    if any((found["model"] == model).sum() < FEWEST for model in wanted):
        found = calls(ledger, status=ANSWERED, until=until, limit=_READ, columns=_COLUMNS)
    asked = _asked(ledger, list(found["call_id"]))
    return found.assign(
        input_chars=pd.array([asked.get(call, (None, None))[0] for call in found["call_id"]], dtype="Int64"),
        settings=pd.array([asked.get(call, (None, None))[1] for call in found["call_id"]], dtype="string"),
    )


def settings_of(endpoint: str, body: Mapping[str, Any]) -> str:
    """A digest of a request's JSON body without what the user asks; equal for equal settings."""
    field = ENDPOINTS[endpoint].request.prompt_field
    said = body.get(field)
    messages = said if isinstance(said, list) else []
    told = [each for each in messages if isinstance(each, dict) and each.get("role") in ("system", "developer")]
    rest = {name: value for name, value in body.items() if name != field}
    return hashlib.blake2b(msgspec.json.encode([endpoint, rest, told], order="sorted"), digest_size=8).hexdigest()


def pool(history: pd.DataFrame, *, model: str, endpoint: str, settings: str, cap: int | None) -> Pool | None:
    """The calls most like a planned one, if they are enough; None where even all of them are too few.

    Those of the same settings, else of the same model and endpoint, else of the same model, else all. Where of other
    settings more than a few answers were cut short below the planned `cap`, nothing tells what they would have come to.
    Calls of a simulated engine and of real ones are never mixed: the newest call says which of them count.
    """
    usable = history.dropna(subset=["e2e_s", "input_tokens", "output_tokens", "input_chars"])
    usable = usable[usable["input_chars"] > 0]
    if usable.empty:
        return None
    simulated = bool(usable["simulated"].fillna(False).iloc[-1])
    usable = usable[usable["simulated"].fillna(False) == simulated]
    of_model = usable["model"] == model
    at_endpoint = of_model & (usable["endpoint"] == endpoint)
    cut = (usable["status"] != ANSWERED[0]) & (usable["output_tokens"] < (math.inf if cap is None else cap))
    steps = {
        "the same model, endpoint and settings": at_endpoint & (usable["settings"] == settings),
        "the same model and endpoint": at_endpoint,
        "the same model": of_model,
        "any model": pd.Series(data=True, index=usable.index),
    }
    for place, (told, which) in enumerate(steps.items()):
        if which.sum() >= FEWEST and (place == 0 or cut[which].mean() <= MOST_CUT):
            return _pool(usable[which].iloc[-NEWEST:], f"{told}{', simulated' if simulated else ''}")
    return None


def _pool(rows: pd.DataFrame, told: str) -> Pool:
    given, chars, output, e2e_s = (
        rows[name].to_numpy(dtype=float) for name in ("input_tokens", "input_chars", "output_tokens", "e2e_s")
    )
    guessed = [
        (rows[f"{name}_source"] == "estimated").to_numpy(dtype=bool) for name in ("input_tokens", "output_tokens")
    ]
    return Pool(told, given / chars, output, e2e_s, *guessed)


def _asked(ledger: Ledger, call_ids: list[str]) -> dict[str, tuple[int | None, str | None]]:
    """The length and the settings of what each of these calls asked."""
    sql = """
        SELECT calls.id, calls.input_chars, calls.endpoint, requests.body
        FROM calls LEFT JOIN requests ON requests.key = calls.request_key
        WHERE calls.id IN (SELECT value FROM json_each(?))"""
    with ledger.reading() as connection:
        rows = connection.execute(sql, (msgspec.json.encode(call_ids).decode(),)).fetchall() if connection else []
    return {
        row["id"]: (
            row["input_chars"],
            None if row["body"] is None else settings_of(row["endpoint"], msgspec.json.decode(row["body"])),
        )
        for row in rows
    }
