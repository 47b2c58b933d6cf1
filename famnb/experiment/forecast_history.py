"""Past calls that a forecast is made of: read from a ledger, and the group of them most like a planned call."""

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
from famnb.experiment.services import address_of, call_address, is_simulated
from famnb.frame.calls import calls
from famnb.frame.filters import Moment
from famnb.profiles import find_endpoints
from famnb.record import Ledger

MIN_CALLS = 5
"""Calls that a group must have; with fewer the next, less specific group is tried."""
MAX_TRUNCATED_SHARE = 0.05
"""Share of answers that a lower cap may have cut short in a group of other settings."""
MAX_CALLS = 500
"""Newest calls of a group that are used: more would narrow the intervals little, and old ones may be outdated."""
_MAX_READ = 5_000
"""Newest calls that are read, which bounds the time of a forecast on a ledger of any size."""
_COLUMNS = (
    "call_id",
    "started_at",
    "endpoint",
    "model",
    "status",
    "simulated",
    "url",
    "profile",
    "e2e_s",
    "input_tokens",
    "output_tokens",
    "input_tokens_source",
    "output_tokens_source",
)

_SYSTEM_ROLES = ("system", "developer")

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class SimilarCalls:
    """Past calls that stand for planned ones."""

    description: str
    """Which calls they are, in words."""
    rows: pd.DataFrame
    """Rows of `read_history`, one a call."""

    @property
    def n(self) -> int:
        """Number of calls."""
        return len(self.rows)

    @property
    def tokens_per_char(self) -> Floats:
        """Each call's input tokens per character sent."""
        return self.values("input_tokens") / self.values("input_chars")

    def values(self, column: str) -> Floats:
        """The numbers in a column."""
        return self.rows[column].to_numpy(dtype=float)

    def is_estimated(self, column: str) -> Flags:
        """Of which calls the tokens in a column were estimated from the length of the text."""
        return (self.rows[f"{column}_source"] == "estimated").to_numpy(dtype=bool)


def read_history(ledger: Ledger, models: Iterable[str], *, until: Moment | None = None) -> pd.DataFrame:
    """Read the newest answered calls of these models, and of all models if one of them has few; newest last.

    The columns: some of `famnb.calls`, then `input_chars` (characters sent, messages framed) and `settings` (see
    `settings_digest`). `until` leaves out calls that started then or later.
    Raises LedgerError if the ledger cannot be read.
    """
    wanted = sorted(set(models))
    rows = calls(ledger, model=wanted, status=ANSWERED, until=until, limit=_MAX_READ, columns=_COLUMNS)
    if any((rows["model"] == model).sum() < MIN_CALLS for model in wanted):
        rows = calls(ledger, status=ANSWERED, until=until, limit=_MAX_READ, columns=_COLUMNS)
    requests = _read_requests(ledger, list(rows["call_id"]))
    sizes_and_settings = [requests.get(call_id, (None, None)) for call_id in rows["call_id"]]
    return rows.assign(
        input_chars=pd.array([chars for chars, _ in sizes_and_settings], dtype="Int64"),
        settings=pd.array([settings for _, settings in sizes_and_settings], dtype="string"),
    )


def settings_digest(endpoint: str, body: Mapping[str, Any]) -> str:
    """A digest of a request's JSON body without what the user asks; equal for equal settings."""
    prompt_field = ENDPOINTS[endpoint].request.prompt_field
    prompt = body.get(prompt_field)
    messages = prompt if isinstance(prompt, list) else []
    # A system text is among the messages on some endpoints, and is a setting on all of them.
    system = [message for message in messages if isinstance(message, dict) and message.get("role") in _SYSTEM_ROLES]
    settings = {name: value for name, value in body.items() if name != prompt_field}
    return hashlib.blake2b(msgspec.json.encode([endpoint, settings, system], order="sorted"), digest_size=8).hexdigest()


def find_similar_calls(
    history: pd.DataFrame, *, service: str, model: str, endpoint: str, settings: str, token_cap: int | None
) -> SimilarCalls | None:
    """Past calls to draw a forecast from: the most specific group of at least MIN_CALLS calls.

    Groups, most specific first: same model, endpoint and settings; same model and endpoint; same model; any model.
    Only calls that the planned one's service answered count, since another may be faster, and another model's host.
    Returns None if even the last group is too small, or only such whose answers a cap below `token_cap` cut short.
    """
    usable = history.dropna(subset=["e2e_s", "input_tokens", "output_tokens", "input_chars"])
    usable, simulated = _answered_by(service, usable[usable["input_chars"] > 0])
    if usable.empty:
        return None
    same_model = usable["model"] == model
    same_endpoint = same_model & (usable["endpoint"] == endpoint)
    below_cap = usable["output_tokens"] < (math.inf if token_cap is None else token_cap)
    was_truncated = (usable["status"] != ANSWERED[0]) & below_cap
    groups = {
        "the same model, endpoint and settings": same_endpoint & (usable["settings"] == settings),
        "the same model and endpoint": same_endpoint,
        "the same model": same_model,
        "any model": pd.Series(data=True, index=usable.index),
    }
    for level, (description, mask) in enumerate(groups.items()):
        is_large_enough = mask.sum() >= MIN_CALLS
        # An answer that a lower cap cut short says nothing about how long it would have become. Under the same settings
        # the planned calls are cut short alike.
        if is_large_enough and (level == 0 or was_truncated[mask].mean() <= MAX_TRUNCATED_SHARE):
            return SimilarCalls(f"{description}{', simulated' if simulated else ''}", usable[mask].tail(MAX_CALLS))
    return None


def _answered_by(service: str, history: pd.DataFrame) -> tuple[pd.DataFrame, bool]:
    """The calls that a service answered, and whether they are simulated: at an address only if all are."""
    simulated = history["simulated"].fillna(False).astype(bool)
    if is_simulated(service):
        return history[simulated], True
    places = zip(history["url"], history["profile"], history["endpoint"], strict=True)
    addresses = [call_address(url, find_endpoints(profile)[endpoint]) for url, profile, endpoint in places]
    is_own = pd.Series(addresses, index=history.index, dtype=object) == address_of(service)
    real = history[is_own & ~simulated]
    return (history[is_own], True) if real.empty and is_own.any() else (real, False)


def _read_requests(ledger: Ledger, call_ids: list[str]) -> dict[str, tuple[int | None, str | None]]:
    """The length and the settings of each call's request, by the call's id."""
    sql = """
        SELECT calls.id, calls.input_chars, calls.endpoint, requests.body
        FROM calls LEFT JOIN requests ON requests.key = calls.request_key
        WHERE calls.id IN (SELECT value FROM json_each(?))"""
    with ledger.reading() as connection:
        rows = connection.execute(sql, (msgspec.json.encode(call_ids).decode(),)).fetchall() if connection else []
    return {
        row["id"]: (
            row["input_chars"],
            None if row["body"] is None else settings_digest(row["endpoint"], msgspec.json.decode(row["body"])),
        )
        for row in rows
    }
