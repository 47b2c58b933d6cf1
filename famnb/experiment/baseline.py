"""Comparisons over time: an experiment against an earlier one with the same prompts, such as before an upgrade.

earlier ── the frames of its runs ┐
                                  ├── same prompts, same variants ── `summary`
later ──── the frames of its runs ┘

Variants are paired by their labels; two that have no others are paired whatever they are called. Prompts are paired by
their ids, and only where the text is the same.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd
from pandas.io.json import build_table_schema

from famnb.atomic_write import atomic_write
from famnb.errors import InvalidRequest
from famnb.experiment.summary import Summary, drop_warmups, list_variants, summary
from famnb.formatting import format_count

NEEDED_COLUMNS = frozenset({"variant", "prompt_id", "repeat", "warmup", "status", "error"})
"""The columns that a frame of an experiment has at least."""
BEFORE, AFTER = "before", "after"


def compare_frames(old: Sequence[pd.DataFrame], new: Sequence[pd.DataFrame], **options: Any) -> Summary:
    """Compare the runs of an experiment before and after something changed, variant by variant.

    Each frame is what `Experiment.frame` returned, or `read_baseline`, of one run or several. `options` are those of
    `summary` but for baseline, pairs and notes. In the summary every variant stands twice, `…, before` and `…, after`,
    and each is compared with itself; all variants' comparisons of a metric are judged together, and intervals have in
    them how runs differ. Raises InvalidRequest if they have no variant or no prompt in common.
    """
    before, after = (drop_warmups(_join_runs(frames)) for frames in (old, new))
    variants = [list_variants(before), list_variants(after)]
    matches = [(name, name) for name in variants[1] if name in variants[0]]
    if not matches and len(variants[0]) == len(variants[1]) == 1:
        matches = [(variants[0][0], variants[1][0])]
    if not matches:
        raise InvalidRequest(
            f"old, new: they have no variant in common: {', '.join(variants[0])} before, {', '.join(variants[1])} "
            "after; give the variants the same labels"
        )
    notes = [*_describe("Before", before), *_describe("After", after)]
    for when, side in ((BEFORE, 0), (AFTER, 1)):
        if rest := [name for name in variants[side] if name not in {match[side] for match in matches}]:
            notes.append(f"Only {when}, and not compared: {', '.join(rest)}.")
    first_texts, second_texts = _hash_texts(before), _hash_texts(after)
    shared = first_texts.keys() & second_texts.keys()
    texts = {name: (first_texts[name], second_texts[name]) for name in shared}
    differing = {name for name, (first, second) in texts.items() if first and second and not first & second}
    prompts = shared - differing
    if not prompts:
        raise InvalidRequest("old, new: they have no prompt in common; prompts are paired by their ids and texts")
    if differing:
        verb = "is" if len(differing) == 1 else "are"
        notes.append(f"{format_count(len(differing), 'prompt')} had another text before and {verb} left out.")
    if alone := len(first_texts.keys() ^ second_texts.keys()):
        verb = "is" if alone == 1 else "are"
        notes.append(f"{format_count(alone, 'prompt')} {verb} in only one of the two and {verb} left out.")
    is_one = len(matches) == 1
    pairs = [(BEFORE, AFTER)] if is_one else [(f"{a}, {BEFORE}", f"{b}, {AFTER}") for a, b in matches]
    sides = []
    for side, rows in enumerate((before, after)):
        labels = {match[side]: pair[side] for match, pair in zip(matches, pairs, strict=True)}
        names = rows["variant"].astype(str).map(labels)
        is_compared = rows["prompt_id"].astype(str).isin(prompts) & names.notna()
        sides.append(rows[is_compared].assign(variant=names[is_compared]))
    both = pd.concat(sides, ignore_index=True)
    both["variant"] = pd.Categorical(both["variant"], categories=[label for pair in pairs for label in pair])
    return summary(both, pairs=pairs, notes=notes, **options)


def _join_runs(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """All runs of one side in one frame, with a column `run`."""
    parts: list[pd.DataFrame] = []
    for frame in frames:
        parts += [part for _, part in frame.groupby("run")] if "run" in frame else [frame]
    if not parts:
        raise InvalidRequest("against: there is no run to compare with")
    runs = [part.assign(run=number) for number, part in enumerate(parts)]
    # The order of the variants is that of the first run; with other categories the column would lose it.
    return runs[0] if len(runs) == 1 else pd.concat(runs, ignore_index=True)


def save_baseline(frame: pd.DataFrame, path: str | os.PathLike[str]) -> Path:
    """Write what `Experiment.frame` returned to a JSON file, replacing it if it exists; return its path."""
    target = Path(path).expanduser()
    records = frame.astype(object).where(frame.notna(), None).to_dict("records")
    # Not `DataFrame.to_json`, which rounds to 15 decimals: what did not change would then differ, if by little.
    table = {"schema": build_table_schema(frame, index=False), "data": records}
    atomic_write(target, msgspec.json.encode(table, enc_hook=str))
    return target


def read_baseline(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Return the frame that `save_baseline` wrote. Raises InvalidRequest for any other file, OSError as it comes."""
    text = Path(path).expanduser().read_text()
    try:
        frame = pd.read_json(io.StringIO(text), orient="table", precise_float=True)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidRequest(f"{os.fspath(path)}: expected a file that Experiment.save_baseline wrote") from error
    return check_frame(os.fspath(path), frame)


def check_frame(name: str, frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame. Raises InvalidRequest unless it is that of an experiment."""
    lacking = sorted(NEEDED_COLUMNS - set(frame.columns))
    if lacking:
        raise InvalidRequest(f"{name}: expected the frame of an experiment; it has no column {', '.join(lacking)}")
    return frame


def _hash_texts(rows: pd.DataFrame) -> dict[str, set[str]]:
    """What stands for the text of each prompt, by its id; empty where nothing does."""
    hashes = rows["prompt_hash"] if "prompt_hash" in rows else pd.Series(pd.NA, index=rows.index)
    groups = hashes.groupby(rows["prompt_id"].astype(str))
    return {str(name): set(map(str, values.dropna())) for name, values in groups}


def _describe(when: str, rows: pd.DataFrame) -> Iterator[str]:
    """Yield what one of the two is: its name, its first day, and the models that answered."""
    facts = [str(name) for name in rows["experiment"].dropna().unique()] if "experiment" in rows else []
    if "started_at" in rows and rows["started_at"].notna().any():
        facts.append(f"of {rows['started_at'].min():%Y-%m-%d}")
    if "reply_model" in rows and rows["reply_model"].notna().any():
        facts.append(f"answered by {', '.join(sorted(map(str, rows['reply_model'].dropna().unique())))}")
    if facts:
        yield f"{when}: {', '.join(facts)}."
