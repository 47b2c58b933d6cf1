"""Presets: forms saved under a name in one JSON file, without keys and image data; unknown entries stay as they are.

{"version": 1, "presets": {name: {"endpoint", "prompt", "system", "images": [address], "fields": {"top_p": "0.9"}}}}
"""

from __future__ import annotations

import json
import os
from pathlib import Path as File
from typing import Any, NamedTuple

import platformdirs

from famnb.atomic_write import atomic_write
from famnb.endpoints import ENDPOINTS
from famnb.errors import InvalidRequest
from famnb.secret_patterns import find_keys, known_keys
from famnb.widget.form import images
from famnb.widget.form.draft import Draft, form_fields
from famnb.widget.form.images import PromptImage

VERSION = 1
_ENTRY_KEYS = ("endpoint", "prompt", "system", "images", "fields")
_MAX_NAME_LENGTH = 80


class LoadedPreset(NamedTuple):
    """A preset as a draft, and what of it was left out."""

    draft: Draft
    left_out: tuple[str, ...]
    """A sentence each."""


def default_path() -> File:
    """The file that FAMNB_PRESETS names, else `presets.json` in the user's configuration folder."""
    return File(os.getenv("FAMNB_PRESETS") or File(platformdirs.user_config_dir("famnb")) / "presets.json").expanduser()


def names(path: File) -> tuple[str, ...]:
    """The names of the presets in a file, in alphabetical order; raises InvalidRequest for a file that is none."""
    return tuple(sorted(_presets(_read(path)), key=str.casefold))


def save(path: File, name: str, draft: Draft) -> tuple[str, ...]:
    """Save a draft under a name, in place of the one of that name; a sentence for each thing that is not saved.

    Raises InvalidRequest for a name that is none, or where a text holds what looks like a key; OSError.
    """
    name = name.strip()
    if not name or len(name) > _MAX_NAME_LENGTH or not name.isprintable():
        raise InvalidRequest(f"preset: expected a name of 1 to {_MAX_NAME_LENGTH} characters, got {name[:40]!r}")
    entry, left_out = _encode(draft)
    if kinds := [kind for kind, _ in find_keys(json.dumps(entry, ensure_ascii=False), known_keys())]:
        raise InvalidRequest(f"preset: a text of the form holds what looks like a key ({kinds[0]}); take it out first")
    content = _read(path)
    _presets(content)[name] = entry
    _write(path, content)
    return left_out


def load(path: File, name: str) -> LoadedPreset:
    """The preset of a name, as far as this version knows what it says; raises InvalidRequest where there is none."""
    content = _read(path)
    presets = _presets(content)
    if name not in presets:
        raise InvalidRequest(
            f"preset: there is no {name!r} in {path}; there are {', '.join(sorted(presets)) or 'none'}"
        )
    entry = presets[name]
    if not isinstance(entry, dict) or entry.get("endpoint") not in ENDPOINTS:
        given = entry.get("endpoint") if isinstance(entry, dict) else entry
        raise InvalidRequest(
            f"preset {name!r}: expected an object with an endpoint of {', '.join(ENDPOINTS)}; got {given!r:.60}"
        )
    loaded = _decode(entry)
    version = content.get("version")
    newer = isinstance(version, int) and version > VERSION
    notes = (f"The file was written by a newer famnb (version {version} of its form).",) if newer else ()
    return loaded._replace(left_out=(*notes, *loaded.left_out))


def delete(path: File, name: str) -> None:
    """Delete a preset, if there is one of that name."""
    content = _read(path)
    if _presets(content).pop(name, None) is not None:
        _write(path, content)


def _encode(draft: Draft) -> tuple[dict[str, Any], tuple[str, ...]]:
    """A draft as a preset, and what is not in it."""
    links = images.without_uploads(draft.pictures)
    texts = {".".join(path): text for path, text in draft.raw.items() if text.strip()}
    heavy = [name for name, text in texts.items() if images.has_image_data(text)]
    left = [f"`{name}` is not saved: it holds the data of an image" for name in heavy]
    if count := len(draft.pictures) - len(links):
        left.append(f"{count} uploaded {'image is' if count == 1 else 'images are'} not saved: a preset holds no data")
    made = {
        "endpoint": draft.endpoint,
        "prompt": draft.prompt,
        "system": draft.system,
        "images": [picture.url for picture in links],
        "fields": {name: text for name, text in texts.items() if name not in heavy},
    }
    return {name: value for name, value in made.items() if value}, tuple(left)


def _decode(entry: dict[str, Any]) -> LoadedPreset:
    """The draft of an entry; each value that this version does not know, or that does not fit, is left out."""
    at = ENDPOINTS[entry["endpoint"]]
    known = {field.name: field for field in form_fields(at)}
    left = [f"`{name}` is left out: this famnb does not know it" for name in entry if name not in _ENTRY_KEYS]
    texts = {name: entry.get(name, "") for name in ("prompt", "system")}
    given = entry.get("fields", {})
    raw = {}
    for name, text in given.items() if isinstance(given, dict) else ():
        if name not in known:
            left.append(f"`{name}` is left out: {at.name} has no such field")
        elif not isinstance(text, str) or not known[name].fits(text):
            left.append(f"`{name}` is left out: {text!r:.40} is none of its values")
        else:
            raw[known[name].path] = text
    shown = []
    for url in entry.get("images", ()) if isinstance(entry.get("images", ()), list) else ():
        try:
            shown.append(images.image_from_url(url) if isinstance(url, str) else _no_link(url))
        except InvalidRequest as fault:
            left.append(f"An image is left out: {fault}")
    draft = Draft(
        endpoint=at.name,
        prompt=texts["prompt"] if isinstance(texts["prompt"], str) else "",
        system=texts["system"] if isinstance(texts["system"], str) else "",
        pictures=tuple(shown),
        raw=raw,
    )
    return LoadedPreset(draft, tuple(left))


def _no_link(url: object) -> PromptImage:
    raise InvalidRequest(f"expected an address, got {url!r:.40}")


def _read(path: File) -> dict[str, Any]:
    """All that a file says, also what is unknown; raises InvalidRequest for another file, OSError."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {"version": VERSION, "presets": {}}
    except ValueError as error:
        raise InvalidRequest(f"{path}: this is not JSON ({error}); mend it, or move it away") from None
    if not isinstance(content, dict) or not isinstance(content.get("presets", {}), dict):
        raise InvalidRequest(f'{path}: expected an object with "presets" by name; mend it, or move it away')
    return content


def _presets(content: dict[str, Any]) -> dict[str, Any]:
    presets: dict[str, Any] = content.setdefault("presets", {})
    return presets


def _write(path: File, content: dict[str, Any]) -> None:
    """Write all of the file or nothing; raises OSError."""
    # In the same folder, since only within one file system a rename takes the old file's place at once.
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic_write(path, f"{json.dumps(content, indent=2, ensure_ascii=False)}\n".encode())
