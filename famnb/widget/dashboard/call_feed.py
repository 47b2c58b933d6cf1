"""The calls of a ledger, kept in memory and brought up to date by what is new."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pandas as pd

from famnb.frame.calls import calls
from famnb.record import Ledger, prices

COLUMNS = (
    *("started_at", "endpoint", "model", "status", "error", "simulated", "http_status", "attempts"),
    *("ttft_s", "ttfa_s", "e2e_s", "cost_usd", "cost_low_usd", "cost_high_usd"),
    *(f"{side}_tokens{end}" for side in ("input", "output") for end in ("", "_low", "_high")),
)
"""What figures are made of; prompts are not among them, being most of the bytes."""
# Calls of several processes are not recorded in the order in which they started.
OVERLAP = timedelta(seconds=60)
"""How far back from the newest call, or the oldest that runs, calls are read again."""


class CallFeed:
    """All calls of a ledger as a frame, of which each look reads only the end, if the rest cannot have changed."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._prices: object = None
        self.frame = pd.DataFrame(columns=pd.Index(COLUMNS))
        """The calls as of the last `refresh`, newest last."""

    def refresh(self) -> bool:
        """Look at the ledger; return whether anything is new. Raises LedgerError if it cannot be read."""
        before, known_prices = self.frame, tuple(prices)
        if known_prices != self._prices:
            self.frame = self._read()
            self._prices = known_prices
        else:
            least = len(self._ledger)
            self.frame = self._read_end()
            # Calls that were deleted, loaded, or recorded very late.
            if not least <= len(self.frame) <= len(self._ledger):
                self.frame = self._read()
        return not self.frame.equals(before)

    def _read_end(self) -> pd.DataFrame:
        if not len(self.frame):
            return self._read()
        started_at = self.frame["started_at"]
        running = started_at[self.frame["status"] == "running"]
        since = min([started_at.iloc[-1], *running]) - OVERLAP
        kept: pd.DataFrame = self.frame[started_at < since]
        return pd.concat([kept, self._read(since=since)], ignore_index=True)

    def _read(self, since: pd.Timestamp | None = None) -> pd.DataFrame:
        frame = calls(self._ledger, since=since, columns=COLUMNS)
        # Categories that differ cannot be joined as such.
        words: dict[Any, type] = dict.fromkeys(frame.select_dtypes("category").columns, object)
        plain: pd.DataFrame = frame.astype(words)
        return plain
