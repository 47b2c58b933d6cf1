"""Whether a tool may run: a thread asks and waits, buttons decide; drawing them is left to others.

asked ──┬── approved ── (runs)
        ├── declined
        └── (stopped)
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Literal, TypeAlias

from famnb.errors import Interrupted
from famnb.events import Address
from famnb.reply import Block

Verdict: TypeAlias = Literal["asked", "approved", "declined"]
Verdicts: TypeAlias = dict[Address, Verdict]
"""What is to become of the calls of one reply."""


class Approval:
    """One call at a time waits for a verdict; `changed` is told when there is another one to decide, or a decision."""

    def __init__(self, *, auto: bool, changed: Callable[[], object]) -> None:
        """With `auto` every call is approved at once."""
        self._auto = auto
        self._changed = changed
        self._verdicts: Verdicts = {}
        self._rest: Verdict | None = None
        """What was decided for all further calls of the reply."""
        self._stopped = False
        self._decided = threading.Condition()

    def begin(self) -> Verdicts:
        """Forget what was decided, for a further reply; where its own verdicts will stand."""
        with self._decided:
            self._verdicts, self._stopped = {}, False
            self._rest = "approved" if self._auto else None
            return self._verdicts

    def ask(self, call: Block) -> bool:
        """Wait, on a thread that may, until somebody has decided; raises Interrupted when the turn is stopped."""
        with self._decided:
            self._verdicts[call.at] = self._rest or "asked"
        self._changed()
        with self._decided:
            self._decided.wait_for(lambda: self._stopped or self._verdicts[call.at] != "asked")
            if self._stopped:
                raise Interrupted("stopped while a tool waited for approval")
            return self._verdicts[call.at] == "approved"

    def decide(self, at: Address, *, approved: bool, rest: bool = False) -> None:
        """Approve or decline the call at an address, and with `rest` all that follow; one that is decided stays so."""
        with self._decided:
            if self._verdicts.get(at) != "asked":
                return
            verdict: Verdict = "approved" if approved else "declined"
            self._verdicts[at] = verdict
            self._rest = verdict if rest else None
            self._decided.notify_all()
        self._changed()

    def stop(self) -> None:
        """Let nothing more run."""
        with self._decided:
            self._stopped = True
            self._decided.notify_all()
