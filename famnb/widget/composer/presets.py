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

import msgspec
import platformdirs

from famnb.atomic_write import atomic_write
from famnb.errors import InvalidRequest
from famnb.formatting import format_count
from famnb.profiles import DEFAULT, find_profile
from famnb.profiles.profile import Profile
from famnb.secret_patterns import find_keys, known_keys
from famnb.widget.form import images
from famnb.widget.form.draft import Draft, form_fields

# As much as the list of presets shows on one line.
_MAX_NAME_LENGTH = 80


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """A preset in the file."""

    endpoint: str
    prompt: str = ""
    system: str = ""
    images: tuple[str, ...] = ()
    fields: dict[str, str] = {}
    profile: str = DEFAULT


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
    return tuple(sorted(_read(path)["presets"], key=str.casefold))


def save(path: Path, name: str, draft: Draft, *, profile: Profile | None = None) -> tuple[str, ...]:
    """Save a draft under a name, replacing any of that name; returns a sentence for each thing that is not saved.

    `profile` is the API of the service that it is for, the document's unless given. Raises InvalidRequest if the name
    is empty, too long or not printable, if a text of the draft holds what looks like a key, or if the file holds no
    presets; OSError if it cannot be written.
    """
    name = name.strip()
    if not name or len(name) > _MAX_NAME_LENGTH or not name.isprintable():
        raise InvalidRequest(f"preset: expected a name of 1 to {_MAX_NAME_LENGTH} characters, got {name[:40]!r}")
    links = images.without_uploads(draft.pictures)
    texts = {".".join(path): text for path, text in draft.raw.items() if text.strip()}
    # Image data would make the file megabytes long, and may be private.
    with_image_data = [field for field, text in texts.items() if images.has_image_data(text)]
    left_out = [f"`{field}` is not saved: it holds the data of an image" for field in with_image_data]
    if count := len(draft.pictures) - len(links):
        left_out.append(
            f"{format_count(count, 'uploaded image')} {'is' if count == 1 else 'are'} not saved: a preset holds no data"
        )
    entry = Entry(
        endpoint=draft.endpoint,
        prompt=draft.prompt,
        system=draft.system,
        images=tuple(picture.url for picture in links),
        fields={field: text for field, text in texts.items() if field not in with_image_data},
        profile=DEFAULT if profile is None else profile.name,
    )
    # The whole entry, since a key may be pasted into any field.
    if kinds := [kind for kind, _ in find_keys(msgspec.json.encode(entry).decode(), known_keys())]:
        raise InvalidRequest(f"preset: a text of the form holds what looks like a key ({kinds[0]}); take it out first")
    content = _read(path)
    content["presets"][name] = msgspec.to_builtins(entry)
    _write(path, content)
    return tuple(left_out)


def load(path: Path, name: str, *, profile: Profile | None = None) -> LoadedPreset:
    """Load the preset of a name for a service with that profile, without the fields that its endpoint does not have.

    Raises InvalidRequest if the preset does not exist or is damaged, or if the service lacks its endpoint.
    """
    profile = profile or find_profile(DEFAULT)
    presets = _read(path)["presets"]
    if name not in presets:
        raise InvalidRequest(
            f"preset: there is no {name!r} in {path}; there are {', '.join(sorted(presets)) or 'none'}"
        )
    try:
        entry = msgspec.convert(presets[name], Entry)
        pictures = tuple(map(images.image_from_url, entry.images))
    except (msgspec.ValidationError, InvalidRequest) as error:
        raise InvalidRequest(f"preset {name!r} in {path}: {error}; mend it, or save it anew") from None
    if entry.endpoint not in profile.endpoints:
        raise InvalidRequest(
            f"preset {name!r}: it was saved with profile {entry.profile!r} and its endpoint {entry.endpoint!r}, which "
            f"profile {profile.name!r} of this client does not have (only {', '.join(profile.endpoints)}); "
            f"load it in a composer of famnb.Client(profile={entry.profile!r})"
        )
    notes = []
    if entry.profile != profile.name:
        notes.append(
            f"It was saved with profile {entry.profile!r}; this client has {profile.name!r}: check the fields."
        )
    known_fields = {field.name: field for field in form_fields(profile.endpoints[entry.endpoint])}
    fitting = {
        field: text for field, text in entry.fields.items() if field in known_fields and known_fields[field].fits(text)
    }
    notes += [
        f"`{field}` is left out: {entry.endpoint} has no such field or value"
        for field in entry.fields
        if field not in fitting
    ]
    draft = Draft(
        endpoint=entry.endpoint,
        endpoints=profile.endpoints,
        prompt=entry.prompt,
        system=entry.system,
        pictures=pictures,
        raw={known_fields[field].path: text for field, text in fitting.items()},
    )
    return LoadedPreset(draft, tuple(notes))


def delete(path: Path, name: str) -> None:
    """Delete a preset, if there is one of that name."""
    content = _read(path)
    if content["presets"].pop(name, None) is not None:
        _write(path, content)


def _read(path: Path) -> dict[str, Any]:
    """All that the file holds, known or not; without a file, no presets. Raises InvalidRequest, OSError."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {"version": 1, "presets": {}}
    except ValueError as error:
        raise InvalidRequest(f"{path}: this is not JSON ({error}); mend it, or move it away") from None
    if not isinstance(content, dict) or not isinstance(content.setdefault("presets", {}), dict):
        raise InvalidRequest(f'{path}: expected an object with "presets" by name; mend it, or move it away')
    return content


def _write(path: Path, content: dict[str, Any]) -> None:
    """Replace the file, all of it or nothing; raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic_write(path, f"{json.dumps(content, indent=2, ensure_ascii=False)}\n".encode())
