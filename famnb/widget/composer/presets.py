"""Presets: requests of the form, saved by name in one JSON file, without keys and image data.

The file: {"version": 1, "presets": {name: {"profile": "fam", "endpoint": "messages", "body": {…}}}}. What this version
of famnb does not know in it stays there when a preset is saved.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import platformdirs

from famnb.atomic_write import atomic_write
from famnb.endpoints import endpoint as find_endpoint
from famnb.errors import InvalidRequest
from famnb.profiles.profile import Profile
from famnb.request import Request
from famnb.secret_patterns import find_keys
from famnb.widget.form.images import has_image_data

# As much as the list of presets shows on one line.
_MAX_NAME_LENGTH = 80


def file_path() -> Path:
    """The file that FAMNB_PRESETS names, else `presets.json` in the user's configuration folder."""
    return Path(os.getenv("FAMNB_PRESETS") or Path(platformdirs.user_config_dir("famnb")) / "presets.json").expanduser()


def names() -> tuple[str, ...]:
    """The names of the presets, in alphabetical order; raises InvalidRequest if the file holds something else."""
    return tuple(sorted(_read()["presets"], key=str.casefold))


def save(name: str, request: Request, profile: Profile) -> None:
    """Save a request to a service of that profile under a name, replacing any of that name.

    Raises InvalidRequest if the name is empty, too long or not printable, if the request holds the data of an image or
    what looks like a key, or if the file holds no presets; OSError if it cannot be written.
    """
    name = name.strip()
    if not name or len(name) > _MAX_NAME_LENGTH or not name.isprintable():
        raise InvalidRequest(f"preset: expected a name of 1 to {_MAX_NAME_LENGTH} characters, got {name[:40]!r}")
    entry = {"profile": profile.name, "endpoint": request.endpoint, "body": request.body()}
    text = json.dumps(entry, ensure_ascii=False)
    # It would make the file megabytes long, and may be private.
    if has_image_data(text):
        raise InvalidRequest("preset: it holds the data of an image; remove that, or give the image's address")
    # The whole entry, since a key may be pasted into any field.
    if kinds := [kind for kind, _ in find_keys(text)]:
        raise InvalidRequest(f"preset: a text of the form holds what looks like a key ({kinds[0]}); take it out first")
    content = _read()
    content["presets"][name] = entry
    _write(content)


def load(name: str, profile: Profile) -> Request:
    """Return the request of a preset, as a service of that profile takes it.

    Raises InvalidRequest if the preset does not exist or is damaged, or if the service does not take it.
    """
    presets = _read()["presets"]
    match presets.get(name):
        case None:
            known = ", ".join(sorted(presets)) or "none"
            raise InvalidRequest(f"preset: there is no {name!r} in {file_path()}; there are {known}")
        case {"profile": str(source), "endpoint": str(endpoint), "body": dict(body)}:
            pass
        case _:
            raise InvalidRequest(f"preset {name!r} in {file_path()}: expected profile, endpoint and body; save it anew")
    try:
        return find_endpoint(endpoint, profile.endpoints).request.from_body(body)
    except InvalidRequest as error:
        hint = f"; load it in a composer of famnb.Client(profile={source!r})" if source != profile.name else ""
        raise InvalidRequest(f"preset {name!r}: it was saved with profile {source!r}: {error}{hint}") from None


def delete(name: str) -> None:
    """Delete a preset, if there is one of that name."""
    content = _read()
    content["presets"].pop(name, None)
    _write(content)


def _read() -> dict[str, Any]:
    """All that the file holds, known or not; without a file, no presets. Raises InvalidRequest, OSError."""
    path = file_path()
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {"version": 1, "presets": {}}
    except ValueError as error:
        raise InvalidRequest(f"{path}: this is not JSON ({error}); mend it, or move it away") from None
    if not isinstance(content, dict) or not isinstance(content.setdefault("presets", {}), dict):
        raise InvalidRequest(f'{path}: expected an object with "presets" by name; mend it, or move it away')
    return content


def _write(content: dict[str, Any]) -> None:
    """Replace the file, all of it or nothing; raises OSError."""
    file_path().parent.mkdir(parents=True, exist_ok=True)
    atomic_write(file_path(), f"{json.dumps(content, indent=2, ensure_ascii=False)}\n".encode())
