"""What a composer holds, as plain values: read as a request, and made from one so that it is the same request again.

request ── drafted ── Draft: prompt, system, pictures, a text per field, fields as JSON ── read ── the same request
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pydantic

from famnb.client.conversation import UserContent
from famnb.endpoints import Endpoint, compose, endpoint
from famnb.errors import InvalidRequest
from famnb.request import Request
from famnb.request.message_parts import TEXT_TYPES
from famnb.widget.form import images
from famnb.widget.form.fields import (
    EXACT,
    OTHER,
    FieldPath,
    FieldTexts,
    FormField,
    faults_of,
    read_texts,
    request_fields,
)
from famnb.widget.form.images import PromptImage

UNWRITTEN = "…"
"""Stands for a prompt while only the settings are looked at."""
_EXACT = FormField(
    path=EXACT,
    kind="json",
    help="An object of fields that are sent as they stand, in place of what their controls say; for what has none.",
    hint="JSON",
    group=OTHER,
)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A request in the making."""

    endpoint: str
    """The endpoint's name."""
    prompt: str = ""
    """What is asked."""
    system: str = ""
    """How the model shall behave."""
    pictures: tuple[PromptImage, ...] = ()
    """Images that go along with the prompt."""
    raw: FieldTexts = dataclasses.field(default_factory=dict)
    """The text in each control."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a draft comes to."""

    path: str
    """The endpoint's path."""
    request: Request | None
    """The request; None while there are faults."""
    faults: Mapping[FieldPath, str]
    """What is wrong, by field."""
    body: Mapping[str, Any]
    """The JSON body as it stands, right or wrong."""
    replaced: bool
    """Whether a whole conversation is sent instead of the prompt."""


def form_fields(at: Endpoint) -> tuple[FormField, ...]:
    """The fields of an endpoint that have a control."""
    # A system field that takes a text is drawn once, as the system text of all endpoints.
    system = (at.traits.system_field,)
    fields = (field for field in request_fields(at.request) if field.path != system or field.kind != "text")
    return (*fields, _EXACT)


def read_draft(draft: Draft) -> Reading:
    """The request that a draft means, or what keeps it from being one; a prompt that is not written yet is no fault."""
    at = endpoint(draft.endpoint)
    known = form_fields(at)
    made, faults = read_texts(known, {path: images.restore_image_data(text) for path, text in draft.raw.items()})
    exact = made.pop(EXACT[0], {})
    if not isinstance(exact, dict):
        faults[EXACT], exact = f"an object is expected, got {json.dumps(exact)[:40]}", {}
    whole = {**_asked(at, draft.prompt, draft.system, draft.pictures), **made, **exact}
    request = None
    if not faults:
        try:
            request = at.request.model_validate(whole)
        except pydantic.ValidationError as error:
            faults = faults_of(known, error)
    replaced = at.request.prompt_field in made or at.request.prompt_field in exact
    return Reading(
        path=at.path, request=request, faults=faults, body=request.body() if request else whole, replaced=replaced
    )


def draft_of(request: Request) -> Draft:
    """The draft that means exactly this request."""
    at, whole = endpoint(request.endpoint), request.body()
    said, left = _said(at, whole)
    known = form_fields(at)
    written = {field: field.write(value) for field in known for value in _at(left, field.path)}
    texts = {field.path: text for field, text in written.items() if field.fits(text)}
    made, _ = read_texts(known, texts)
    exact = {name: value for name, value in left.items() if _canonical(made.get(name, ...)) != _canonical(value)}
    raw = {path: text for path, text in texts.items() if path[0] not in exact}
    if exact:
        raw[EXACT] = json.dumps(exact, indent=2, ensure_ascii=False)
    return dataclasses.replace(said, raw={path: images.hide_image_data(text) for path, text in raw.items()})


def replace_prompt(request: Request, prompt: str, shown: Sequence[PromptImage]) -> Request:
    """The request with something else for the last thing that its user says; raises InvalidRequest."""
    at = endpoint(request.endpoint)
    field = at.request.prompt_field
    told = request.body()[field]
    message = _asked(at, prompt, "", shown)[field]
    if isinstance(told, str):
        return request.replace(**{field: message})
    if told[-1].get("role") != "user":
        raise InvalidRequest(f"{field}: it does not end with what a user says, so there is nothing to continue")
    last = {"role": "user", "content": message} if isinstance(message, str) else message[-1]
    return request.replace(**{field: [*told[:-1], last]})


def split_content(said: UserContent) -> tuple[str, tuple[PromptImage, ...]]:
    """The text and the pictures of what a user says."""
    return (said, ()) if isinstance(said, str) else (_text(said), tuple(PromptImage(url) for url in _urls(said)))


def last_user_content(request: Request) -> UserContent:
    """What a request's user says last: a text, or parts where there is more than a text."""
    told = request.body()[request.prompt_field]
    content: UserContent = told if isinstance(told, str) else told[-1].get("content") or ""
    text = _text(content)
    return text if isinstance(content, str) or (text and len(content) == 1) else content


def _asked(at: Endpoint, prompt: str, system: str, shown: Sequence[PromptImage]) -> dict[str, Any]:
    """The part of the body that a prompt, a system text and pictures make."""
    words = prompt if prompt.strip() else UNWRITTEN
    made = compose(at.name, words, system=system if system.strip() else None).body()
    del made["model"]
    if shown:
        said = made[at.request.prompt_field]
        before = [] if isinstance(said, str) else said[:-1]
        images_ = [{"type": "image_url", "image_url": {"url": picture.url}} for picture in shown]
        message = at.request.user_message([{"type": "text", "text": words}, *images_])
        made[at.request.prompt_field] = [*before, message]
    return made


def _said(at: Endpoint, whole: Mapping[str, Any]) -> tuple[Draft, dict[str, Any]]:
    """What of a body is a plain prompt, system text and pictures, and the other fields."""
    prompt, system, shown = _heard(at, whole)
    draft = Draft(endpoint=at.name, prompt=prompt, system=system, pictures=shown)
    asked = _asked(at, prompt, system, shown)
    told = {name for name, value in asked.items() if _canonical(value) == _canonical(whole.get(name, ...))}
    field = at.request.prompt_field
    if field not in told:
        draft = dataclasses.replace(draft, prompt="", pictures=())
    # On the chat endpoints the system text is a message of the conversation, and goes where that goes.
    if not {*asked} - {field} <= told or (len(asked) == 1 and field not in told):
        draft = dataclasses.replace(draft, system="")
    return draft, {name: value for name, value in whole.items() if name not in told}


def _heard(at: Endpoint, whole: Mapping[str, Any]) -> tuple[str, str, tuple[PromptImage, ...]]:
    """The prompt, system text and pictures that a body seems to have."""
    said = whole[at.request.prompt_field]
    system = _text(whole.get(at.traits.system_field)) if at.traits.system_field else ""
    if isinstance(said, str):
        return said, system, ()
    if said[0].get("role") == "system":
        system = _text(said[0].get("content"))
    content = said[-1].get("content")
    shown = tuple(PromptImage(url) for url in _urls(content))
    return _text(content), system, shown


def _text(content: Any) -> str:
    """The text of a content whose first part is its only text."""
    match content:
        case str():
            return content
        case [{"type": str(kind), "text": str(text)}, *_] if kind in TEXT_TYPES:
            return text
        case _:
            return ""


def _urls(content: Any) -> list[str]:
    match content:
        case list():
            places = [part.get("image_url") for part in content]
            return [url for place in places if (url := place.get("url") if isinstance(place, dict) else place)]
        case _:
            return []


def _at(values: Any, path: FieldPath) -> list[Any]:
    """The value at a place, if there is one."""
    for step in path:
        if not isinstance(values, dict) or step not in values:
            return []
        values = values[step]
    return [values]


def _canonical(value: Any) -> str:
    """A JSON value as a text that tells 1 from 1.0 and from true; nothing equals what is missing."""
    return "missing" if value is ... else json.dumps(value, sort_keys=True)
