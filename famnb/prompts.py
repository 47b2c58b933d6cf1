"""Prompts with names and versions, kept in the ledger's file.

    famnb.prompts.save("greeting", "Say hello to {name}.", note="the first try")
    famnb.prompts.save("greeting", "Say hello to {name}, in French.")    # version 2
    famnb.prompts.list(); famnb.prompts.diff("greeting", 1, 2)

    famnb.Composer(prompt=famnb.prompts.get("greeting"))                 # the latest version; a text like any other
    famnb.Experiment([famnb.prompts.get("tides", version=n) for n in (1, 2)], …)
    famnb.Experiment(rows, template=famnb.prompts.get("greeting"), …)

`ledger` is a Ledger, a path, or a client that records; without one it is that of the client that `famnb.connect` has
made last, or else the default one.
"""

from __future__ import annotations

import difflib
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Self

from famnb.errors import InvalidRequest, LedgerError, UnknownName
from famnb.formatting import escape_html
from famnb.record import Ledger, serialize
from famnb.record.ledger import LedgerSource, connected_ledger, ledger_of
from famnb.secret_patterns import find_keys
from famnb.validation import check_text

if TYPE_CHECKING:
    import pandas as pd

# As much as lists and labels show on one line.
MAX_NAME_LENGTH = 80
"""Characters of a name."""


class SavedPrompt(str):
    """The text of one version of a saved prompt, to be used wherever a text may be."""

    name: str
    version: int
    """From 1 on."""
    note: str
    """What was noted when it was saved; empty if nothing was."""
    saved_at: datetime
    """UTC."""

    def __new__(
        cls, text: str, *, name: str = "", version: int = 0, note: str = "", saved_at: datetime | None = None
    ) -> Self:
        prompt = super().__new__(cls, text)
        prompt.name, prompt.version, prompt.note = name, version, note
        prompt.saved_at = saved_at or datetime.now(UTC)
        return prompt


class PromptDiff(str):
    """The lines in which two versions differ, as `diff -u` writes them; a notebook shows them in colour."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        # Half transparent, so that they suit light pages and dark ones.
        colours = {"+": "rgba(46,160,67,0.2)", "-": "rgba(248,81,73,0.2)"}
        lines = [
            f'<span style="background-color:{colours.get(line[:1], "transparent")}">{escape_html(line)}</span>'
            for line in self.split("\n")
        ]
        return f'<pre style="white-space:pre-wrap">{"<br>".join(lines)}</pre>'


def save(name: str, text: str, *, note: str = "", ledger: LedgerSource = None) -> SavedPrompt:
    """Save a text as the next version of a prompt and return that version.

    A text that is the latest version already makes no other, so that a cell may be run again; its `note` is changed if
    one is given. Raises InvalidRequest for a name or a text that is blank, too long or holds what looks like a key,
    LedgerError if it cannot be written.
    """
    name = check_text("name", name, expected=f"a name of 1 to {MAX_NAME_LENGTH} characters on one line").strip()
    if len(name) > MAX_NAME_LENGTH or not name.isprintable():
        raise InvalidRequest(f"name: expected 1 to {MAX_NAME_LENGTH} characters on one line, got {name[:40]!r}")
    # As a plain text: a saved prompt may be saved under another name.
    text = str(check_text("text", text, expected="the prompt as a text"))
    if kinds := [kind for kind, _ in find_keys(f"{name}\n{text}\n{note}")]:
        raise InvalidRequest(f"text: it holds what looks like a key ({kinds[0]}); take it out first")
    store = _ledger(ledger)
    latest = next(reversed(_read(store, name)), None)
    if latest == text and note in ("", latest.note):
        return latest
    at_us = serialize.microseconds(datetime.now(UTC))
    if latest == text:
        statement = "UPDATE prompts SET note = ? WHERE name = ? AND version = ?"
        values: tuple[str | int, ...] = (note, name, latest.version)
    else:
        # The number is found in the transaction that writes it: another kernel may save this prompt just now.
        statement = (
            "INSERT INTO prompts SELECT ?1, IFNULL(MAX(version), 0) + 1, ?2, ?3, ?4 FROM prompts WHERE name = ?1"
        )
        values = (name, text, note, at_us)
    store.execute([(statement, tuple(map(serialize.storable, values)))])
    saved = next((version for version in reversed(_read(store, name)) if version == text), None)
    if saved is None or note not in ("", saved.note):
        raise LedgerError(
            f"the prompt could not be written to {store.path}: make room or unlock the file, and try again"
        )
    return saved


def get(name: str, version: int | None = None, *, ledger: LedgerSource = None) -> SavedPrompt:
    """Return a version of a prompt, the latest one by default. Raises UnknownName if there is none."""
    store = _ledger(ledger)
    versions = _read(store, name)
    if not versions:
        names = [*dict.fromkeys(prompt.name for prompt in _read(store))]
        similar = difflib.get_close_matches(str(name), names, 1)
        hint = f"did you mean {similar[0]!r}?" if similar else f"there are {', '.join(map(repr, names)) or 'none'}"
        raise UnknownName(f"no prompt {name!r} is saved in {store.path}; {hint}")
    if version is None:
        return versions[-1]
    found = next((prompt for prompt in versions if prompt.version == version), None)
    if found is None:
        numbers = ", ".join(str(prompt.version) for prompt in versions)
        raise UnknownName(f"prompt {name!r} has no version {version!r}; it has {numbers}")
    return found


def list(name: str | None = None, *, ledger: LedgerSource = None) -> pd.DataFrame:
    """Return a row for each version of every prompt, or of one: name, version, text, note, saved_at (UTC)."""
    # Here, since a Composer uses saved prompts, and opens without waiting for pandas.
    import pandas as pd

    prompts = _read(_ledger(ledger), name)
    types = {"name": "string", "version": "Int64", "text": "string", "note": "string"}
    rows = [{**vars(prompt), "text": str(prompt)} for prompt in prompts]
    frame = pd.DataFrame(rows, columns=[*types, "saved_at"]).astype(types)
    return frame.assign(saved_at=pd.to_datetime(frame["saved_at"], utc=True))


def diff(name: str, old: int, new: int | None = None, *, ledger: LedgerSource = None) -> PromptDiff:
    """Return the lines in which two versions of a prompt differ; `new` is the latest one by default.

    Raises UnknownName if there is no such version.
    """
    first, second = get(name, old, ledger=ledger), get(name, new, ledger=ledger)
    titles = f"{name} v{first.version}", f"{name} v{second.version}"
    lines = difflib.unified_diff(first.splitlines(), second.splitlines(), titles[0], titles[1], lineterm="")
    return PromptDiff("\n".join(lines))


def delete(name: str, version: int | None = None, *, ledger: LedgerSource = None) -> None:
    """Delete a version of a prompt, or all of them. Raises UnknownName if there is none."""
    get(name, version, ledger=ledger)
    statement = "DELETE FROM prompts WHERE name = ? AND (?2 IS NULL OR version = ?2)"
    _ledger(ledger).execute([(statement, (name, version))])


def _ledger(source: LedgerSource) -> Ledger:
    return connected_ledger() if source is None else ledger_of(source)


def _read(ledger: Ledger, name: str | None = None) -> tuple[SavedPrompt, ...]:
    """Return the versions of a prompt, or of all, by name, oldest first. Raises LedgerError."""
    query = "SELECT text, name, version, note, at_us FROM prompts WHERE ?1 IS NULL OR name = ?1 ORDER BY name, version"
    return tuple(
        SavedPrompt(text, name=title, version=version, note=note, saved_at=serialize.moment(at_us))
        for text, title, version, note, at_us in ledger.fetch(query, (name,))
    )
