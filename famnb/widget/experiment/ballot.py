"""The ballot: blind votes on two answers to one prompt, side by side; each vote is recorded at once.

Experiment ── shuffled pairs ── Ballot ──┬── front/tools/ballot.js (keys, buttons) ── vote ── ledger
                                         └── saved with the notebook: progress, at the end the result
"""

from __future__ import annotations

from typing import Literal, get_args

from famnb.errors import InvalidRequest
from famnb.experiment.experiment import BaseExperiment
from famnb.experiment.plan import Cell
from famnb.experiment.resume import ANSWERED
from famnb.experiment.votes import EQUAL, JUDGE_PREFIX, ranking_sentences, shuffle_pairs
from famnb.formatting import capitalize, format_count, format_percent
from famnb.record import ratings
from famnb.record.ratings import RecordedVote, VoteWinner
from famnb.validation import check_integer
from famnb.widget.html import sanitize, transcript
from famnb.widget.html.sanitize import SafeHtml
from famnb.widget.runtime.intent import intent
from famnb.widget.runtime.tool import RELOADED, BaseTool
from famnb.widget.runtime.view import View

_HEAD = ("variant", "chosen over an average one", "strength (95% interval)", "won", "tied", "votes")
_PARAGRAPH = SafeHtml("<p>{}</p>")
_WHICH_SHARE = (
    "Which share is which: a sentence compares two variants, in the votes that chose one of them; the table compares "
    "each with an average one."
)


class PairView(View, frozen=True):
    """Two answers to a prompt; nothing says whose they are."""

    prompt: SafeHtml
    left: SafeHtml
    right: SafeHtml


class BallotView(View, frozen=True):
    """The ballot."""

    status: str
    turn: int
    """Counts the pairs that were shown, so that a key pressed for one that is gone is recognised."""
    pair: PairView | None
    choices: tuple[str, ...]
    """What can be chosen now."""
    results: SafeHtml


class Ballot(BaseTool):
    """Blind votes on pairs of an experiment's answers; `vote` and `undo` do what keys and buttons do."""

    entry = "tools/ballot.js"
    note = "A ballot: run this cell to vote."

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
        self._calls = {answer.cell.key: answer.call_id for answer in experiment.answers()}
        pairs = shuffle_pairs([cell for cell in experiment.cells if cell.key in self._calls], seed=self._seed)
        if not pairs:
            raise InvalidRequest(
                "there is no pair to vote on: a vote needs two variants' answers to the same prompt; run() makes them"
            )
        self._votes = {
            _pair_key(vote): vote
            for vote in ratings.read_votes(experiment.ledger, experiment.name)
            if vote.voter == voter
        }
        texts = {call.call_id: call.reply.text for call in experiment.ledger.each(self._calls.values())}
        count = len(pairs) if n is None else check_integer("n", n, minimum=1)
        self._pairs: list[tuple[Cell, Cell]] = []
        """What is voted on."""
        self._equal: list[tuple[int, tuple[Cell, Cell]]] = []
        """Pairs of equal answers, between which there is nothing to choose, each with how many pairs are before it."""
        for pair in pairs:
            if len(self._pairs) == count:
                break
            if len({texts[self._calls[cell.key]] for cell in pair}) == 1:
                self._equal.append((len(self._pairs), pair))
            else:
                self._pairs.append(pair)
        self._current: tuple[Cell, Cell] | None = None
        self._turn = 0
        self._pair: PairView | None = None
        self._results: transcript.Bundle | None = None
        """The result that is shown; None before it is asked for."""
        super().__init__()
        self._show_next()

    @property
    def progress(self) -> tuple[int, int]:
        """Pairs that are voted on or skipped, and all pairs."""
        return sum(_pair_key(pair) in self._votes for pair in self._pairs), len(self._pairs)

    def vote(self, winner: VoteWinner) -> None:
        """Vote on the pair that is shown: left, right, tie or skip; recorded at once, and the next pair is shown."""
        with self.lock:
            if winner not in get_args(VoteWinner):
                raise InvalidRequest(f"winner: expected one of {', '.join(get_args(VoteWinner))}; got {winner!r}")
            if self._current is None:
                raise InvalidRequest("there is no pair left to vote on; undo() goes back")
            left, right = self._current
            self._save(self._pairs.index(self._current), [self._make_vote(left, right, winner)])
            self._show_next()

    def undo(self) -> None:
        """Take the latest vote back, also one of an earlier day, and show its pair again."""
        with self.lock:
            latest = self._latest_vote()
            if latest is None:
                raise InvalidRequest("there is no vote to take back")
            ratings.delete_vote(self._experiment.ledger, latest)
            del self._votes[_pair_key(latest)]
            self._show(next(pair for pair in self._pairs if _pair_key(pair) == _pair_key(latest)))

    def results(self) -> None:
        """Show the result so far under the pair; it is saved with the notebook."""
        with self.lock:
            self._results = results_bundle(self._experiment, progress=self._describe_progress())
            self.refresh()
            self.update_saved()

    def view(self) -> BallotView:
        results = SafeHtml() if self._results is None else SafeHtml(self._results["text/html"])
        choices = ("left", "right", "tie", "skip") if self._current else ()
        note = RELOADED.format(what="the result", tool="the ballot")
        return BallotView(
            status=self._describe_progress(),
            turn=self._turn,
            pair=self._pair,
            choices=(*choices, *(["undo"] if self._latest_vote() else ()), "results"),
            results=results + (_PARAGRAPH.format(note) if results and self.reloaded else ""),
        )

    def saved(self) -> transcript.Bundle:
        return self._results or transcript.render([transcript.Section("note", f"{self._describe_progress()}.")])

    @intent
    def choose(self, choice: Literal["left", "right", "tie", "skip", "undo", "results"], turn: int) -> None:
        """Do what a key or a button stands for, if the pair of that turn is still shown."""
        if turn != self._turn:
            return
        match choice:
            case "undo":
                self.undo()
            case "results":
                self.results()
            case _:
                self.vote(choice)

    def __repr__(self) -> str:
        return f"<Ballot {self._experiment.name}, {self._describe_progress()}>"

    def _show_next(self) -> None:
        """Show the first pair without a vote; if all have one, the result."""
        pair = next((pair for pair in self._pairs if _pair_key(pair) not in self._votes), None)
        if pair is None:
            self._save(len(self._pairs), [])
        self._show(pair)

    def _make_vote(self, left: Cell, right: Cell, winner: VoteWinner, detail: str = "") -> RecordedVote:
        return RecordedVote(
            experiment=self._experiment.name,
            voter=self._voter,
            left_cell=left.key,
            right_cell=right.key,
            winner=winner,
            detail=detail,
            seed=self._seed,
        )

    def _save(self, index: int, votes: list[RecordedVote]) -> None:
        """Keep votes, and ties between the equal answers before the pair of that index.

        Not those after it: they would stand for pairs that nobody has come to yet.
        """
        passed = [pair for position, pair in self._equal if position <= index and _pair_key(pair) not in self._votes]
        votes = [*(self._make_vote(*pair, "tie", EQUAL) for pair in passed), *votes]
        if votes:
            ratings.save(self._experiment.ledger, votes)
        self._votes |= {_pair_key(vote): vote for vote in votes}

    def _show(self, pair: tuple[Cell, Cell] | None) -> None:
        """Show a pair; if there is none, the result."""
        self._current, self._results, self._pair = pair, None, None
        self._turn += 1
        if pair is None:
            self.results()
            return
        calls = (self._experiment.ledger.call(self._calls[cell.key]) for cell in pair)
        left, right = (transcript.answer_html(call.reply) for call in calls)
        prompt = transcript.render([transcript.Section("prompt", pair[0].prompt.text, "user")])
        self._pair = PairView(prompt=SafeHtml(prompt["text/html"]), left=left, right=right)
        self.refresh()
        self.update_saved()

    def _describe_progress(self) -> str:
        done, total = self.progress
        count = sum(_pair_key(pair) in self._votes for _, pair in self._equal)
        equal = f"; ties because the answers are equal: {count:,}" if count else ""
        if self._current is None:
            return f"{f'All {total:,} voted on' if total else 'There is nothing to vote on'}{equal}"
        return f"{done:,} of {total:,} voted on{equal}"

    def _latest_vote(self) -> RecordedVote | None:
        votes = [self._votes[_pair_key(pair)] for pair in self._pairs if _pair_key(pair) in self._votes]
        return max(votes, key=lambda vote: vote.at, default=None)


def _pair_key(pair: tuple[Cell, Cell] | RecordedVote) -> frozenset[str]:
    """Return the key of a pair, the same whichever of its answers stands left."""
    return frozenset(
        (pair.left_cell, pair.right_cell) if isinstance(pair, RecordedVote) else (cell.key for cell in pair)
    )


def results_bundle(experiment: BaseExperiment, *, progress: str) -> transcript.Bundle:
    """The result of people's votes so far, with a sentence on how far they are, `progress`."""
    try:
        ranking = experiment.ranking()
    except ValueError as error:
        return transcript.render([transcript.Section("note", f"{progress}. No ranking yet: {error}.")])
    rows = [
        [
            sanitize.visible(str(name)),
            format_percent(line["better"]),
            f"{line['strength']:.2f} ({line['low']:.2f} to {line['high']:.2f})",
            *(f"{int(line[column]):,}" for column in ("wins", "ties", "votes")),
        ]
        for name, line in ranking.frame.iterrows()
    ]
    lines = [
        f"{progress}. {ranking.n:,} votes count, on {format_count(ranking.clusters, 'prompt')}.",
        *ranking_sentences(ranking),
        *(f"{capitalize(note)}." for note in ranking.notes),
        _WHICH_SHARE,
    ]
    frame = experiment.frame()
    simulated = frame.loc[frame["status"].isin(ANSWERED), "simulated"].fillna(False)
    share = "These" if simulated.all() else "Some of these"
    lines += [f"{share} answers were simulated; a decision needs real ones."] if simulated.any() else []
    words = {
        "text/html": SafeHtml().join(map(_PARAGRAPH.format, lines)),
        "text/markdown": "\n\n".join(map(sanitize.escape_markdown, lines)),
        "text/plain": "\n".join(lines),
    }
    return transcript.join_bundles([words, transcript.table_bundle(_HEAD, rows)])
