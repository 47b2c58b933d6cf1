"""The ballot: blind votes on two answers to one prompt, side by side; each vote is recorded at once.

Experiment ── shuffled pairs ── Ballot ──┬── BallotView (keys, buttons) ── vote ── ledger
                                         └── output below it, saved with the notebook: progress, at the end the result
"""

from __future__ import annotations

import threading
from typing import Any, get_args

import traitlets

from famnb.errors import InvalidRequest
from famnb.experiment.experiment import BaseExperiment
from famnb.experiment.plan import Cell
from famnb.experiment.votes import JUDGE_PREFIX, read_votes, shuffle_pairs
from famnb.record import ratings
from famnb.record.ratings import RecordedVote, VoteWinner
from famnb.reply import Reply
from famnb.validation import check_integer
from famnb.widget.experiment import vote_results
from famnb.widget.html import notices, sanitize, transcript
from famnb.widget.html.sanitize import SafeHtml
from famnb.widget.live.base import FRONT, BaseWidget
from famnb.widget.live.output import Output

_ANSWER_KINDS = ("text", "code", "failure", "note")
"""The kinds of a reply's sections that are shown: none says which variant answered, or how long it took."""
_RELOADED = "This page was reloaded; to save the result with the notebook, show the ballot in a new cell."


class BallotView(BaseWidget):
    """The widget that draws one pair; its traits change together, with `turn` as the last."""

    _esm = FRONT / "ballot.js"
    _css = FRONT / "ballot.css"
    status = traitlets.Unicode().tag(sync=True)
    """How far the ballot is."""
    pair = traitlets.Dict().tag(sync=True)
    """`asked`, `left` and `right` as clean HTML, absent once no pair is left; `can`: the choices that are possible."""
    results = traitlets.Unicode().tag(sync=True)
    """The result as HTML, where the output under the ballot cannot show it."""
    trouble = traitlets.Unicode().tag(sync=True)
    """What went wrong; empty when nothing did."""
    turn = traitlets.Int().tag(sync=True)
    """Counts the changes, so that a click on a pair that is no longer shown is recognised."""


class Ballot:
    """Blind votes on pairs of an experiment's answers; `vote` and `undo` do what keys and buttons do."""

    def __init__(
        self, experiment: BaseExperiment, *, n: int | None = None, voter: str = "", seed: int | None = None
    ) -> None:
        """Draw `n` pairs, or all; `seed` decides which, in which order, and which answer stands left.

        Raises InvalidRequest if there is no pair, or for a `voter` that is reserved for judges.
        """
        if not isinstance(voter, str) or voter.startswith(JUDGE_PREFIX):
            raise InvalidRequest(
                f"voter: expected a name, none that begins with {JUDGE_PREFIX!r} since those are judges'; "
                f"got {voter!r:.80}"
            )
        self._experiment = experiment
        self._voter = voter
        self._seed = experiment.seed if seed is None else check_integer("seed", seed)
        # Callbacks come on the main thread or on an ipykernel subshell's.
        self._guard = threading.RLock()
        self._calls = {answer.cell.key: answer.call_id for answer in experiment.answers()}
        pairs = shuffle_pairs([cell for cell in experiment.cells if cell.key in self._calls], seed=self._seed)
        if not pairs:
            raise InvalidRequest(
                "there is no pair to vote on: a vote needs two variants' answers to the same prompt; run() makes them"
            )
        count = len(pairs) if n is None else check_integer("n", n, minimum=1)
        self._pairs, self._spare_pairs = pairs[:count], pairs[count:]
        """What is voted on, and what takes the place of a pair whose answers are equal."""
        self._equal_count = 0
        """Pairs left out because their answers are the same."""
        self._votes = {
            _pair_key(vote.left_cell, vote.right_cell): vote
            for vote in read_votes(experiment.ledger, experiment.name)
            if vote.voter == voter
        }
        self._current: tuple[Cell, Cell] | None = None
        self._page = ""
        self._reloaded = False
        self._output: Output | None = None
        """The output under the ballot; None before the ballot is shown."""
        self._bundle = _note_bundle("No vote yet")
        self.view = BallotView()
        """The widget."""
        self.view.on_msg(self._on_message)
        self._show_next()

    @property
    def progress(self) -> tuple[int, int]:
        """Pairs that are voted on or skipped, and all pairs."""
        return sum(_pair_key(left.key, right.key) in self._votes for left, right in self._pairs), len(self._pairs)

    def vote(self, winner: VoteWinner) -> None:
        """Vote on the pair that is shown: left, right, tie or skip; recorded at once, and the next pair is shown."""
        with self._guard:
            if winner not in get_args(VoteWinner):
                raise InvalidRequest(f"winner: expected one of {', '.join(get_args(VoteWinner))}; got {winner!r}")
            if self._current is None:
                raise InvalidRequest("there is no pair left to vote on; undo() goes back")
            left, right = self._current
            vote = RecordedVote(
                experiment=self._experiment.name,
                voter=self._voter,
                left_cell=left.key,
                right_cell=right.key,
                winner=winner,
                seed=self._seed,
            )
            ratings.save(self._experiment.ledger, [vote])
            self._votes[_pair_key(left.key, right.key)] = vote
            self._show_next()

    def undo(self) -> None:
        """Take the latest vote back, also one of an earlier day, and show its pair again."""
        with self._guard:
            latest = self._latest_vote()
            if latest is None:
                raise InvalidRequest("there is no vote to take back")
            ratings.delete_vote(self._experiment.ledger, latest)
            del self._votes[_pair_key(latest.left_cell, latest.right_cell)]
            self._show(
                next(pair for pair in self._pairs if _pair_key(*_cell_keys(pair)) == _pair_key(*_cell_keys(latest)))
            )

    def results(self) -> None:
        """Show the result so far under the ballot, as ordinary output that is saved with the notebook."""
        with self._guard:
            self._publish(vote_results.results_bundle(self._experiment, progress=self._describe_progress()))

    def _ipython_display_(self) -> None:
        with self._guard:
            widget, self._output = Output(), Output()
            widget.show(self.view)
            self._output.captured = widget.captured
            self._reloaded, self._page, self.view.results = False, "", ""
            if widget.captured:
                self._publish(self._bundle)
            else:
                self._output.show(self._bundle)

    def __repr__(self) -> str:
        return f"<Ballot {self._experiment.name}, {self._describe_progress()}>"

    def _show_next(self) -> None:
        """Show the first pair without a vote; if all have one, the result."""
        index = 0
        while index < len(self._pairs):
            pair = self._pairs[index]
            if _pair_key(*_cell_keys(pair)) in self._votes:
                index += 1
            elif self._reply(pair[0]).text != self._reply(pair[1]).text:
                self._show(pair)
                return
            else:
                # Between equal answers there is nothing to choose: a spare pair, if there is one, takes the place.
                self._pairs[index : index + 1], self._spare_pairs = self._spare_pairs[:1], self._spare_pairs[1:]
                self._equal_count += 1
        self._show(None)

    def _show(self, pair: tuple[Cell, Cell] | None) -> None:
        self._current = pair
        can = [
            *(("left", "right", "tie", "skip") if pair else ()),
            *(("undo",) if self._latest_vote() else ()),
            "results",
        ]
        state: dict[str, Any] = {"can": can}
        if pair is not None:
            left, right = (_answer_html(self._reply(cell)) for cell in pair)
            state |= {"asked": _prompt_html(pair[0]), "left": left, "right": right}
        with self.view.hold_sync():
            self.view.status, self.view.pair, self.view.trouble = self._describe_progress(), state, ""
            self.view.turn += 1
        if pair is None:
            self.results()
        else:
            self._publish(_note_bundle(self._describe_progress()))

    def _publish(self, bundle: transcript.Bundle) -> None:
        """Show a bundle in the output under the ballot, or in the ballot if the page cannot change that output."""
        self._bundle = bundle
        if self._output is None:
            return
        if self._output.captured or self._reloaded:
            note = SafeHtml() if self._output.captured else SafeHtml("<p>{}</p>").format(_RELOADED)
            with self.view.hold_sync():
                self.view.results = SafeHtml(bundle["text/html"]) + note
                self.view.turn += 1
        else:
            self._output.replace(bundle)

    def _describe_progress(self) -> str:
        done, total = self.progress
        equal = f"; pairs left out because their answers are equal: {self._equal_count:,}" if self._equal_count else ""
        if self._current is None:
            return f"{f'All {total:,} voted on' if total else 'There is nothing to vote on'}{equal}"
        return f"{done:,} of {total:,} voted on{equal}"

    def _latest_vote(self) -> RecordedVote | None:
        votes = [vote for pair in self._pairs if (vote := self._votes.get(_pair_key(*_cell_keys(pair)))) is not None]
        return max(votes, key=lambda vote: vote.at, default=None)

    def _reply(self, cell: Cell) -> Reply:
        return self._experiment.ledger.call(self._calls[cell.key]).reply

    def _on_message(self, _view: object, message: dict[str, Any], _buffers: object) -> None:
        with self._guard:
            try:
                self._handle(message)
            except Exception as error:
                # ipywidgets would only log it, where nobody sees it.
                with self.view.hold_sync():
                    self.view.trouble = sanitize.visible(notices.error_text(error))
                    self.view.turn += 1

    def _handle(self, message: dict[str, Any]) -> None:
        match message:
            case {"kind": "ready", "page": str(page)}:
                self._reloaded = self._reloaded or self._page not in ("", page)
                self._page = page
            case {"kind": "choose", "turn": int(turn)} if turn != self.view.turn:
                pass  # A click that was made when another pair was shown.
            case {"kind": "choose", "choice": "undo"}:
                self.undo()
            case {"kind": "choose", "choice": "results"}:
                self.results()
            case {"kind": "choose", "choice": "left" | "right" | "tie" | "skip" as winner}:
                self.vote(winner)
            case _:
                pass


def _pair_key(left: str, right: str) -> frozenset[str]:
    """The key of a pair, the same whichever of its answers stands left."""
    return frozenset((left, right))


def _cell_keys(pair: tuple[Cell, Cell] | RecordedVote) -> tuple[str, str]:
    return (pair.left_cell, pair.right_cell) if isinstance(pair, RecordedVote) else (pair[0].key, pair[1].key)


def _answer_html(reply: Reply) -> str:
    """An answer as HTML, without anything that says which variant gave it."""
    return transcript.render([part for part in transcript.sections(reply) if part.kind in _ANSWER_KINDS])["text/html"]


def _prompt_html(cell: Cell) -> str:
    return transcript.render([transcript.Section("prompt", cell.prompt.text, "user")])["text/html"]


def _note_bundle(text: str) -> transcript.Bundle:
    return transcript.render([transcript.Section("note", f"{text}.")])
