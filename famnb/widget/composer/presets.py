"""Presets: drafts of the form, saved by name in one JSON file, without keys and image data.

What this version of famnb does not know in the file is left out when a preset is loaded, and stays in the file when
another one is saved. The file:

{"version": 1, "presets": {name: {
    "endpoint", "prompt", "system", "images": [address], "fields": {"top_p": "0.9"}, "profile": "anthropic"
}}}

Without a profile it is of the first one, the document's.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import platformdirs

from famnb.atomic_write import atomic_write
from famnb.errors import InvalidRequest
from famnb.profiles import DEFAULT, find_profile
from famnb.profiles.profile import Profile
from famnb.secret_patterns import find_keys, known_keys
from famnb.widget.form import images
from famnb.widget.form.draft import Draft, form_fields
from famnb.widget.form.images import PromptImage

VERSION = 1
_ENTRY_KEYS = ("endpoint", "prompt", "system", "images", "fields", "profile")
# As much as the list of presets shows on one line.
_MAX_NAME_LENGTH = 80


class LoadedPreset(NamedTuple):
    """A preset as a draft, and which parts of it the draft does not have."""

    draft: Draft
    left_out: tuple[str, ...]
    """A sentence each."""


def default_path() -> Path:
    """The file that FAMNB_PRESETS names, else `presets.json` in the user's configuration folder."""
    return Path(os.getenv("FAMNB_PRESETS") or Path(platformdirs.user_config_dir("famnb")) / "presets.json").expanduser()


def names(path: Path) -> tuple[str, ...]:
    """The names of the presets in a file, in alphabetical order; raises InvalidRequest if the file holds no presets."""
    return tuple(sorted(_presets(_read(path)), key=str.casefold))


def save(path: Path, name: str, draft: Draft, *, profile: Profile | None = None) -> tuple[str, ...]:
    """Save a draft under a name, replacing any of that name; returns a sentence for each thing that is not saved.

    `profile` is the API of the service that it is for, the document's unless given. Raises InvalidRequest if the name
    is empty, too long or not printable, if a text of the draft holds what looks like a key, or if the file holds no
    presets; OSError if it cannot be written.
    """
    name = name.strip()
    if not name or len(name) > _MAX_NAME_LENGTH or not name.isprintable():
        raise InvalidRequest(f"preset: expected a name of 1 to {_MAX_NAME_LENGTH} characters, got {name[:40]!r}")
    entry, left_out = _encode(draft)
    if profile is not None and profile.name != DEFAULT:
        entry["profile"] = profile.name
    # The whole entry, since a key may be pasted into any field.
    if kinds := [kind for kind, _ in find_keys(json.dumps(entry, ensure_ascii=False), known_keys())]:
        raise InvalidRequest(f"preset: a text of the form holds what looks like a key ({kinds[0]}); take it out first")
    content = _read(path)
    _presets(content)[name] = entry
    _write(path, content)
    return left_out


def load(path: Path, name: str, *, profile: Profile | None = None) -> LoadedPreset:
    """Load the preset of a name for a service with that profile, without what service and version do not know.

    Raises InvalidRequest if there is none of that name, or if the service has no such endpoint.
    """
    profile = profile or find_profile(DEFAULT)
    content = _read(path)
    presets = _presets(content)
    if name not in presets:
        raise InvalidRequest(
            f"preset: there is no {name!r} in {path}; there are {', '.join(sorted(presets)) or 'none'}"
        )
    entry = presets[name]
    owner = entry.get("profile", DEFAULT) if isinstance(entry, dict) else DEFAULT
    if not isinstance(entry, dict) or entry.get("endpoint") not in profile.endpoints:
        value = entry.get("endpoint") if isinstance(entry, dict) else entry
        if owner != profile.name:
            raise InvalidRequest(
                f"preset {name!r}: it was saved with profile {owner!r} and its endpoint {value!r}, which profile "
                f"{profile.name!r} of this client does not have (only {', '.join(profile.endpoints)}); "
                f"load it in a composer of famnb.Client(profile={owner!r})"
            )
        raise InvalidRequest(
            f"preset {name!r}: expected an object with an endpoint of {', '.join(profile.endpoints)}; got {value!r:.60}"
        )
    loaded = _decode(entry, profile)
    version = content.get("version")
    is_newer = isinstance(version, int) and version > VERSION
    notes = (f"The file was written by a newer famnb (version {version} of its form).",) if is_newer else ()
    if owner != profile.name:
        notes = (
            *notes,
            f"It was saved with profile {owner!r}; this client has {profile.name!r}: check model and fields.",
        )
    return loaded._replace(left_out=(*notes, *loaded.left_out))


def delete(path: Path, name: str) -> None:
    """Delete a preset, if there is one of that name."""
    content = _read(path)
    if _presets(content).pop(name, None) is not None:
        _write(path, content)


def _encode(draft: Draft) -> tuple[dict[str, Any], tuple[str, ...]]:
    """A draft as an entry of the file, and a sentence for each part that is left out."""
    links = images.without_uploads(draft.pictures)
    texts = {".".join(path): text for path, text in draft.raw.items() if text.strip()}
    # Image data would make the file megabytes long, and may be private.
    with_image_data = [name for name, text in texts.items() if images.has_image_data(text)]
    left_out = [f"`{name}` is not saved: it holds the data of an image" for name in with_image_data]
    if count := len(draft.pictures) - len(links):
        left_out.append(
            f"{count} uploaded {'image is' if count == 1 else 'images are'} not saved: a preset holds no data"
        )
    entry = {
        "endpoint": draft.endpoint,
        "prompt": draft.prompt,
        "system": draft.system,
        "images": [picture.url for picture in links],
        "fields": {name: text for name, text in texts.items() if name not in with_image_data},
    }
    return {name: value for name, value in entry.items() if value}, tuple(left_out)


def _decode(entry: dict[str, Any], profile: Profile) -> LoadedPreset:
    """An entry of the file as a draft, without each value that this version does not know or that does not fit."""
    target = profile.endpoints[entry["endpoint"]]
    known_fields = {field.name: field for field in form_fields(target)}
    left_out = [f"`{name}` is left out: this famnb does not know it" for name in entry if name not in _ENTRY_KEYS]
    texts = {name: entry.get(name, "") for name in ("prompt", "system")}
    # Checked value by value, since the file may come from another version or from somebody's editor.
    fields = entry.get("fields", {})
    raw = {}
    for name, text in fields.items() if isinstance(fields, dict) else ():
        if name not in known_fields:
            left_out.append(f"`{name}` is left out: {target.name} has no such field")
        elif not isinstance(text, str) or not known_fields[name].fits(text):
            left_out.append(f"`{name}` is left out: {text!r:.40} is none of its values")
        else:
            raw[known_fields[name].path] = text
    urls = entry.get("images", ())
    pictures = []
    for url in urls if isinstance(urls, list) else ():
        try:
            pictures.append(_read_picture(url))
        except InvalidRequest as fault:
            left_out.append(f"An image is left out: {fault}")
    draft = Draft(
        endpoint=target.name,
        endpoints=profile.endpoints,
        prompt=texts["prompt"] if isinstance(texts["prompt"], str) else "",
        system=texts["system"] if isinstance(texts["system"], str) else "",
        pictures=tuple(pictures),
        raw=raw,
    )
    return LoadedPreset(draft, tuple(left_out))


def _read_picture(url: object) -> PromptImage:
    """The picture at an address; raises InvalidRequest if this is no address of one."""
    if not isinstance(url, str):
        raise InvalidRequest(f"expected an address, got {url!r:.40}")
    return images.image_from_url(url)


def _read(path: Path) -> dict[str, Any]:
    """All that the file holds, known or not; without a file, no presets. Raises InvalidRequest, OSError."""
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


def _write(path: Path, content: dict[str, Any]) -> None:
    """Replace the file, all of it or nothing; raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic_write(path, f"{json.dumps(content, indent=2, ensure_ascii=False)}\n".encode())
