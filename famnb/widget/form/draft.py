"""Drafts: what the composer's form holds as plain values, read as a request and made from one without loss.

request ── draft_of ── Draft: prompt, system, pictures, a text per field, JSON ── read_draft ── the same request

A prompt may have variables, names in braces such as `{city}`, and a table of values for them. One without a value is
sent as it stands, so that a prompt about JSON or code means what it says.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import pydantic

from famnb.client.conversation import UserContent
from famnb.endpoints import ENDPOINTS, Endpoint, Endpoints, compose
from famnb.endpoints import endpoint as endpoint_of
from famnb.errors import InvalidArgument, InvalidRequest
from famnb.request import Request
from famnb.request.message_parts import TEXT_TYPES, nearest_effort
from famnb.request.neutral import FieldPath
from famnb.request.tools import FunctionTool
from famnb.widget.form.fields import (
    EXACT,
    EXTRA,
    MODEL,
    OTHER,
    FieldTexts,
    FormField,
    faults_of,
    read_texts,
    request_fields,
)
from famnb.widget.form.images import PromptImage
from famnb.widget.html.facts import system_text

UNWRITTEN = "…"
"""Stands for a prompt that is not written yet, since no request is valid without one."""
_EXACT = FormField(
    name=EXACT[0],
    kind="json",
    help="An object of fields that are sent as they stand, in place of what their controls say; for what has none.",
    hint="JSON",
    group=OTHER,
)


@dataclasses.dataclass(slots=True)
class PromptBox:
    """What the prompt's box holds, and the system text above it."""

    prompt: str
    system: str
    pictures: tuple[PromptImage, ...] = ()
    """Images that go along with the prompt."""
    rows: list[dict[str, str]] = dataclasses.field(default_factory=list)
    """The table of values for the variables of prompt and system text."""
    row: int = 0
    """The index of the row whose values are sent."""

    @property
    def chosen_row(self) -> VariableRow:
        """The values of variables that are sent."""
        return self.rows[self.row] if 0 <= self.row < len(self.rows) else {}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What the form holds: a request in the making, right or wrong."""

    endpoint: str
    """The endpoint's name."""
    endpoints: Endpoints = dataclasses.field(default_factory=lambda: ENDPOINTS, repr=False)
    """The endpoints of the service that it is for, by name."""
    prompt: str = ""
    """The text of the prompt box."""
    system: str = ""
    """How the model shall behave."""
    pictures: tuple[PromptImage, ...] = ()
    """Images that go along with the prompt."""
    raw: FieldTexts = dataclasses.field(default_factory=dict)
    """The text in each control."""
    functions: tuple[FunctionTool, ...] = ()
    """What the model may call, beside the tools in the text of their field."""
    schema: Any = None
    """The type that an answer shall be JSON of; None for none."""

    @property
    def target(self) -> Endpoint:
        """Its endpoint; raises InvalidRequest if the service has none of that name."""
        return endpoint_of(self.endpoint, self.endpoints)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A draft read as a request: the request, or the faults of its fields."""

    request: Request | None
    """The request; None while there are faults."""
    faults: Mapping[FieldPath, str]
    """What is wrong, by field."""
    body: Mapping[str, Any]
    """The JSON body as it stands, right or wrong."""
    replaced: bool
    """Whether a whole conversation is sent instead of the prompt."""

    @property
    def fault_texts(self) -> list[str]:
        """The faults, each with the name of its field."""
        named = [(".".join(path), text) for path, text in self.faults.items()]
        return [text if not name or text.startswith(name) else f"{name}: {text}" for name, text in named]

    def valid_request(self) -> Request:
        """Return the request; raises InvalidRequest, naming the fields, if there are faults."""
        if self.request is None:
            raise InvalidRequest("; ".join(self.fault_texts))
        return self.request


def form_fields(endpoint: Endpoint) -> tuple[FormField, ...]:
    """Return the fields of an endpoint that have a control."""
    # A system field that takes a text is drawn once, as the system text of all endpoints.
    system = (endpoint.traits.system_field,)
    fields = (field for field in request_fields(endpoint) if field.path != system or field.kind != "text")
    return (*fields, _EXACT)


def required_texts(endpoint: Endpoint, endpoints: Endpoints) -> FieldTexts:
    """Return the texts of the fields without which no request is valid, such as a model and a vendor's token cap."""
    fields = compose(endpoint.name, UNWRITTEN, endpoints=endpoints).given_fields()
    del fields[endpoint.request.prompt_field]
    return write_fields(endpoint, fields)


def write_fields(endpoint: Endpoint, fields: Mapping[str, Any]) -> dict[FieldPath, str]:
    """Return the texts for those of a request's fields that have a control."""
    texts = {}
    for field in form_fields(endpoint):
        value: Any = fields
        for step in field.path:
            value = value.get(step, ...) if isinstance(value, Mapping) else ...
        # None is a value; `...` stands for none.
        if value is not ...:
            texts[field.path] = field.write(value)
    return texts


def read_draft(draft: Draft) -> Reading:
    """Return the request that a draft means, or its faults. A prompt that is not written yet is no fault."""
    endpoint = draft.target
    fields = form_fields(endpoint)
    values, faults = read_texts(fields, draft.raw)
    exact = values.pop(EXACT[0], {})
    if not isinstance(exact, dict):
        faults[EXACT], exact = f"an object is expected, got {json.dumps(exact)[:40]}", {}
    if EXTRA in endpoint.request.model_fields:
        # A vendor may have a field that famnb does not know: it is sent as it is, which a remark says.
        unknown = {name: exact.pop(name) for name in [*exact] if name not in endpoint.request.model_fields}
        values |= {EXTRA: {**values.get(EXTRA, {}), **unknown}} if unknown else {}
    # The later wins: a field overrides what the prompt box and the boxes of tools make, and JSON overrides the fields.
    body = _prompt_fields(draft)
    for name, value in values.items():
        match body.get(name), value:
            case dict(asked), dict():
                body[name] = {**asked, **value}
            case list(asked), list() if name == "tools":
                body[name] = [*(tool for tool in asked if tool not in value), *value]
            case _:
                body[name] = value
    body |= exact
    request = None
    try:
        # Without the texts that cannot be read: what else is wrong is said with them, not after they are mended.
        request = endpoint.request.model_validate(body)
    except pydantic.ValidationError as error:
        # A field that lacks what cannot be read in it has its fault already.
        unreadable = {path[0] for path in faults}
        others = {path: fault for path, fault in faults_of(fields, error).items() if path[:1] != () or not faults}
        faults |= {path: fault for path, fault in others.items() if not {*path[:1]} & unreadable}
    request = None if faults else request
    prompt_field = endpoint.request.prompt_field
    return Reading(
        request=request,
        faults=faults,
        body=request.body() if request else body,
        replaced=prompt_field in values or prompt_field in exact,
    )


def draft_of(request: Request, endpoints: Endpoints = ENDPOINTS) -> Draft:
    """Return the draft that means exactly this request, which another service's is read as; `UNWRITTEN` is no prompt.

    What no control can hold, such as an empty object, a null or a padded text, goes into the field of JSON. Raises
    InvalidRequest for a request that none of the endpoints takes.
    """
    endpoint = endpoint_of(request.endpoint, endpoints)
    if type(request) is not endpoint.request:
        request = endpoint.request.from_body(request.body())
    last, given = request.turns()[-1], request.given_fields()
    draft = Draft(
        endpoint=request.endpoint,
        endpoints=endpoints,
        prompt="" if last.text == UNWRITTEN else last.text,
        system=system_text(request),
        pictures=tuple(map(PromptImage, last.images)),
    )
    # This is right for a field if the prompt box would write the same again.
    guess, prompt_field = _prompt_fields(draft), request.prompt_field
    matching = {name for name, value in guess.items() if _canonical(value) == _canonical(given.get(name, ...))}
    if prompt_field not in matching:
        draft = dataclasses.replace(draft, prompt="", pictures=())
    # On the chat endpoints the system text is a message of the conversation, and goes where that goes.
    if not {*guess} - {prompt_field} <= matching or (len(guess) == 1 and prompt_field not in matching):
        draft = dataclasses.replace(draft, system="")
    rest = {name: value for name, value in given.items() if name not in matching}
    fields, written = form_fields(endpoint), write_fields(endpoint, rest)
    texts = {field.path: written[field.path] for field in fields if field.fits(written.get(field.path, ""))}
    values, _ = read_texts(fields, texts)
    # A field that its texts would not read back to exactly goes into the JSON, with all that is nested in it.
    exact = {name: value for name, value in rest.items() if _canonical(values.get(name, ...)) != _canonical(value)}
    raw = {path: text for path, text in texts.items() if path[0] not in exact}
    if exact:
        raw[EXACT] = json.dumps(exact, indent=2, ensure_ascii=False)
    return dataclasses.replace(draft, raw=raw)


def split_content(content: UserContent) -> tuple[str, tuple[PromptImage, ...]]:
    """Return the text and the pictures of what a user says."""
    if isinstance(content, str):
        return content, ()
    return _first_text(content), tuple(PromptImage(url) for url in map(_image_url, content) if url)


def join_content(text: str, pictures: Sequence[PromptImage]) -> UserContent:
    """Return what a user says with a text and pictures."""
    return [{"type": "text", "text": text}, *(_image_part(picture.url) for picture in pictures)] if pictures else text


def last_user_content(request: Request) -> UserContent:
    """Return what a request's user says last: a text, or parts if there is more than a text."""
    conversation = request.body()[request.prompt_field]
    content: Any = conversation if isinstance(conversation, str) else conversation[-1].get("content") or ""
    if isinstance(content, dict):
        # The document has it so where there is but one part.
        content = [content]
    text = _first_text(content)
    if isinstance(content, str) or (text and len(content) == 1):
        return text
    # What another endpoint could not read is written as all of them take it.
    return [_image_part(url) if part.get("type") == "image" and (url := _image_url(part)) else part for part in content]


def carry_over(
    raw: FieldTexts, source: Endpoint, target: Endpoint, endpoints: Endpoints = ENDPOINTS
) -> tuple[dict[FieldPath, str], tuple[str, ...]]:
    """Return the form's texts for another endpoint, and a sentence for each text that it cannot take.

    A field of the same name or meaning keeps its text, right or wrong; so does the model if it is served there.
    `endpoints` are all of the service.
    """
    target_paths = {EXACT, *(field.path for field in request_fields(target))}
    counterparts: dict[FieldPath, FieldPath] = {
        (source.request.cap,): (target.request.cap,),
        (source.request.prompt_field,): (target.request.prompt_field,),
    }
    if source.traits.format and target.traits.format:
        counterparts |= source.traits.format.counterparts(target.traits.format)
    efforts = _effort_paths(target, endpoints)
    budget = raw.get(("thinking", "budget_tokens"), "")
    has_effort = bool(efforts) and budget.isdecimal() and int(budget) > 0
    counterparts |= zip(_effort_paths(source, endpoints), efforts, strict=False)
    kept: dict[FieldPath, str] = {}
    losses: list[str] = []
    for path, text in raw.items():
        # The counterpart first: a vendor's chat has the document's `reasoning.effort` as well, which few vendors take.
        target_path = next((other for other in (counterparts.get(path), path) if other in target_paths), None)
        owners = [other.name for other in endpoints.values() if path[0] in other.request.model_fields]
        if not text:
            continue
        if path == MODEL and text not in target.models and not target.serves(text):
            # A default model is no choice of the user's: that of the target takes its place without a remark.
            if text != source.models[0]:
                losses.append(f"`{text}` is left out: {target.name} does not serve it")
        elif target_path is not None:
            kept[target_path] = text
        elif path[0] == "thinking" and has_effort:
            if path[1:] == ("budget_tokens",):
                kept[efforts[0]] = nearest_effort(int(budget))
                losses.append(f"`thinking` becomes the nearest reasoning effort: {target.name} has no budget")
        elif target.name in owners:
            losses.append(f"`{'.'.join(path)}` is left out: {target.name} writes it in another way")
        else:
            losses.append(f"`{'.'.join(path)}` is left out: {target.name} cannot carry it (only {', '.join(owners)})")
    return kept, tuple(losses)


def _effort_paths(target: Endpoint, endpoints: Endpoints) -> list[FieldPath]:
    """Return the path of the reasoning effort by which an endpoint carries a thinking budget, if it does."""
    if target.traits.thinking != "effort":
        return []
    fields = compose(target.name, "-", thinking=1, endpoints=endpoints).given_fields()
    effort = nearest_effort(1)
    return [path for path, text in write_fields(target, fields).items() if text == effort]


def _prompt_fields(draft: Draft) -> dict[str, Any]:
    """Return the fields of a body that a prompt, a system text, pictures, functions and a schema make."""
    endpoint = draft.target
    model, schema_paths = endpoint.request, endpoint.traits.format
    text = draft.prompt if draft.prompt.strip() else UNWRITTEN
    tools: dict[str, Any] = {"tools": list(draft.functions)} if draft.functions and endpoint.takes_tools else {}
    composed = compose(
        endpoint.name,
        text,
        system=draft.system if draft.system.strip() else None,
        schema=draft.schema if schema_paths else None,
        endpoints=draft.endpoints,
        **tools,
    )
    if draft.pictures:
        composed = composed.with_content(join_content(text, draft.pictures))
    # The model, and a cap that a vendor insists on, have controls of their own.
    names = {model.prompt_field, endpoint.traits.system_field, "tools", schema_paths and schema_paths.outer[0]}
    return {name: value for name, value in composed.body().items() if name in names}


def _first_text(content: Any) -> str:
    """Return a content that is a text, or the text that its parts begin with; "" for any other content."""
    match content:
        case str():
            return content
        case [{"type": str(kind), "text": str(text)}, *_] if kind in TEXT_TYPES:
            return text
        case _:
            return ""


def _image_part(url: str) -> dict[str, Any]:
    """Return an image as a part of a message, from which each endpoint makes its own."""
    return {"type": "image_url", "image_url": {"url": url}}


def _image_url(part: Mapping[str, Any]) -> str | None:
    """Return the address of an image part, as each dialect writes it; None for any other part."""
    match part:
        case {"image_url": {"url": str(url)}} | {"image_url": str(url)}:
            return url
        case {"type": "image", "source": {"type": "url", "url": str(url)}}:
            return url
        case {"type": "image", "source": {"type": "base64", "media_type": str(kind), "data": str(data)}}:
            return f"data:{kind};base64,{data}"
        case _:
            return None


def _canonical(value: Any) -> str:
    """Return a JSON value as a text that tells 1 from 1.0 and from true, which are equal in Python.

    `...` stands for a missing field, since None is a value: its text is no JSON.
    """
    return "missing" if value is ... else json.dumps(value, sort_keys=True)


VariableRow: TypeAlias = Mapping[str, str]
"""The values of one row of the table, by the name of the variable."""

_VARIABLE = re.compile(r"\{([A-Za-z_]\w*)\}")
# More than anyone fills in by hand; a table this long is an experiment.
MAX_VARIABLE_ROWS = 100
"""Rows that a table of values can have."""


def read_rows(rows: Any) -> list[dict[str, str]]:
    """Return the rows of a table of values, given as a frame or a list of mappings; a missing value is empty.

    Raises InvalidArgument for anything else, and for more than MAX_VARIABLE_ROWS.
    """
    items = rows.to_dict("records") if hasattr(rows, "to_dict") else rows
    if isinstance(items, str | bytes | Mapping) or not isinstance(items, Iterable):
        raise InvalidArgument(f"rows: expected a frame, or a list of rows such as {{'city': 'Oslo'}}; got {rows!r:.80}")
    table = []
    for item in items:
        if not isinstance(item, Mapping):
            raise InvalidArgument(f"rows: expected a row such as {{'city': 'Oslo'}}, got {item!r:.80}")
        texts = {str(name): "" if value is None else str(value) for name, value in item.items()}
        # What pandas writes where a value is missing; it takes longer to load than the form to be drawn.
        table.append({name: "" if text in ("nan", "<NA>") else text for name, text in texts.items()})
    if len(table) > MAX_VARIABLE_ROWS:
        raise InvalidArgument(
            f"rows: {len(table):,} are more than the {MAX_VARIABLE_ROWS} of the table; "
            "make an experiment of them: famnb.Experiment(rows, template=…)"
        )
    return table


def find_variables(*texts: str) -> tuple[str, ...]:
    """Return the names of the variables in some texts, each once, in the order in which they first appear."""
    return tuple(dict.fromkeys(match[1] for text in texts for match in _VARIABLE.finditer(text)))


def fill_variables(text: str, row: VariableRow) -> str:
    """Return the text with the row's values in the place of its variables."""
    return _VARIABLE.sub(lambda match: row.get(match[1]) or match[0], text)
