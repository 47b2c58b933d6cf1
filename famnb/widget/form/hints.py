"""What is said before a request is sent: its tokens and cost, what another endpoint cannot take, what may surprise."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from decimal import Decimal
from typing import Any, NamedTuple

from famnb.client.client import BaseClient
from famnb.endpoints import ENDPOINTS, Endpoint, Endpoints, compose
from famnb.formatting import ESTIMATE_MARK, format_count, format_usd
from famnb.record import Ledger
from famnb.record.price import service_names
from famnb.record.price_book import ceiling
from famnb.record.serialize import input_chars
from famnb.record.token_estimates import NUMBERS, PRIOR, TokenRatio, tokens_of_text
from famnb.request import Request
from famnb.request.message_parts import nearest_effort
from famnb.request.neutral import FieldPath
from famnb.widget.form.draft import UNWRITTEN, Draft, Reading, write_fields
from famnb.widget.form.fields import EXACT, MODEL, FieldTexts, request_fields
from famnb.widget.form.tool_picker import TOOLS_PATH, parse_list, parse_tool


class Estimate(NamedTuple):
    """An estimate in a few words, and what they rest on."""

    text: str
    help: str


class RequestEstimator:
    """Estimates clients' requests by what the ledger knows of their models, which is read once a model."""

    def __init__(self, ledger: Ledger | None) -> None:
        self._ledger = ledger
        self._ratios: dict[str, TokenRatio] = {}

    def forget(self) -> None:
        """Read the ledger again at the next request: a call has ended."""
        self._ratios.clear()

    def estimate(self, *requests: tuple[Request, BaseClient]) -> Estimate:
        """Return the input tokens of clients' requests together and the most that they can cost, as far as known."""
        counts: list[int | None] = []
        costs: list[Decimal | None] = []
        bases: list[str] = []
        for request, client in requests:
            characters = input_chars(request)
            most = ceiling(request, service_names(client.base_url(request.endpoint), client.profile.name))
            if characters is None:
                counts.append(None)
                basis = "images and stored responses are tokens of which no number is known"
            else:
                ratio = self._ratio(str(getattr(request, "model", "")))
                count, low, high = tokens_of_text(characters, ratio, NUMBERS)
                counts.append(count)
                source = f"{ratio.n:,} recorded replies" if ratio.n else "4 characters a token"
                basis = f"input: {low:,} to {high:,} tokens, by {source}"
            costs.append(most.usd)
            # The reason begins with what is missing; the rest says what to do.
            limit = f"if the answer has all of {format_count(most.output_tokens or 0, 'token')}"
            bases.append(f"{basis}; cost: {most.reason if most.usd is None else limit}")
        tokens = "" if None in counts else f"{ESTIMATE_MARK}{format_count(sum(filter(None, counts)), 'token')} in"
        cost = "cost unknown" if None in costs else f"at most {format_usd(sum(filter(None, costs), Decimal()))}"
        return Estimate(" · ".join(filter(None, (tokens, cost))), "\n".join(dict.fromkeys(bases)))

    def _ratio(self, model: str) -> TokenRatio:
        if model not in self._ratios:
            fits: dict[str | None, Any] = dict(self._ledger.fits(model)) if self._ledger is not None else {}
            # Which service will answer is not known before it does: the one with most replies is the likeliest.
            self._ratios[model] = max((fit.input for fit in fits.values()), key=lambda ratio: ratio.n, default=PRIOR)
        return self._ratios[model]


def carry_over(
    raw: FieldTexts, source: Endpoint, target: Endpoint, endpoints: Endpoints = ENDPOINTS
) -> tuple[dict[FieldPath, str], tuple[str, ...]]:
    """Return the form's texts for another endpoint, and a sentence for each text that it cannot take.

    A field of the same name or meaning keeps its text, right or wrong; so does the model if it is served there.
    `endpoints` are all of the service.
    """
    target_paths = {field.path for field in request_fields(target)}
    counterparts: dict[FieldPath, FieldPath] = {
        (source.request.cap,): (target.request.cap,),
        (source.request.prompt_field,): (target.request.prompt_field,),
    }
    if source.traits.format and target.traits.format:
        counterparts |= source.traits.format.counterparts(target.traits.format)
    counterparts |= zip(_effort_paths(source, endpoints), _effort_paths(target, endpoints), strict=False)
    kept, lost = _carry_json(raw.get(EXACT, ""), target, endpoints)
    message_losses: list[str] = []
    for path, text in raw.items():
        if path == EXACT:
            continue
        # The counterpart first: a vendor's chat has the document's `reasoning.effort` as well, which few vendors take.
        target_path = counterparts.get(path, path)
        target_path = target_path if target_path in target_paths else path
        is_served = path != MODEL or text in target.models or target.serves(text)
        # A default model is no choice of the user's: that of the target takes its place without a remark.
        if not text or (not is_served and text == source.models[0]):
            continue
        if target_path not in target_paths or not is_served:
            lost[path[0]].append(path)
        elif target_path == (target.request.prompt_field,):
            kept[target_path], message_losses = _carry_messages(text, target, endpoints)
        elif target_path == TOOLS_PATH:
            kept[target_path] = _carry_tools(text, target)
        else:
            kept[target_path] = text
    # A thinking budget has a near equivalent where effort is named, so `compose` says what becomes of it.
    budget = raw.get(("thinking", "budget_tokens"), "")
    thinking = int(budget) if "thinking" in lost and budget.isdecimal() and int(budget) > 0 else None
    if thinking is not None:
        del lost["thinking"]
        for effort_path in _effort_paths(target, endpoints):
            kept[effort_path] = nearest_effort(thinking)
    model = [f"`{raw[MODEL]}` is left out: {target.name} does not serve it"] if lost.pop("model", None) else []
    # Composed only for its losses, so that a loss reads here as it does in `famnb.compose`; the prompt is any text.
    unset: dict[str, Any] = dict.fromkeys(lost)
    losses = [*model, *compose(target.name, "-", thinking=thinking, endpoints=endpoints, **unset).losses]
    # What both have, but in another form, is no loss to `compose`.
    own = target.request.model_fields
    losses += [f"`{name}` is left out: {target.name} writes it in another way" for name in lost if name in own]
    for name, paths in lost.items():
        # `compose` knows only the outermost name of a field.
        if len(paths) == 1:
            losses = [loss.replace(f"`{name}`", f"`{'.'.join(paths[0])}`", 1) for loss in losses]
    return kept, (*losses, *message_losses)


def _effort_paths(target: Endpoint, endpoints: Endpoints) -> list[FieldPath]:
    """Return the path of the reasoning effort by which an endpoint carries a thinking budget, if it does."""
    if target.traits.thinking != "effort":
        return []
    tokens = 1
    composed = compose(target.name, "-", thinking=tokens, endpoints=endpoints).given_fields()
    texts = write_fields(
        target, {name: value for name, value in composed.items() if name != target.request.prompt_field}
    )
    return [path for path, text in texts.items() if text == nearest_effort(tokens)]


def _carry_tools(text: str, target: Endpoint) -> str:
    """Return functions as an endpoint's own dialect declares them; a text that is no list of them as it is."""
    tools = [parse_tool(tool) for tool in parse_list(text) or ()]
    if not tools or None in tools:
        return text
    declared = [target.request.declare_tool(*tool) for tool in tools if tool]
    return json.dumps(declared, indent=2, ensure_ascii=False)


def _carry_json(
    text: str, target: Endpoint, endpoints: Endpoints
) -> tuple[dict[FieldPath, str], defaultdict[str, list[FieldPath]]]:
    """Return what is kept of the fields that are written as JSON, and the paths of those that are lost."""
    lost: defaultdict[str, list[FieldPath]] = defaultdict(list)
    try:
        values = json.loads(text or "{}")
    except ValueError:
        values = None
    if not isinstance(values, dict):
        return {EXACT: text}, lost
    for name in set(values) - set(target.request.model_fields):
        # A field that no endpoint has belongs to some other service, which may take it at any endpoint.
        if any(name in other.request.model_fields for other in endpoints.values()):
            lost[name].append((name,))
    kept = {name: value for name, value in values.items() if name not in lost}
    return ({EXACT: json.dumps(kept, indent=2, ensure_ascii=False)} if kept else {}), lost


def _carry_messages(text: str, target: Endpoint, endpoints: Endpoints) -> tuple[str, list[str]]:
    """Return a conversation without the messages whose role an endpoint lacks, and a sentence for each such role."""
    roles = target.traits.roles
    all_roles = {role for other in endpoints.values() for role in other.traits.roles}
    try:
        messages = json.loads(text)
    except ValueError:
        messages = None
    if (
        all_roles <= {*roles}
        or not isinstance(messages, list)
        or not all(isinstance(message, dict) for message in messages)
    ):
        return text, []
    kept = [message for message in messages if message.get("role") in roles]
    dropped = Counter(str(message.get("role")) for message in messages if message not in kept)
    losses = [
        f"{count} {'message' if count == 1 else 'messages'} of role {role} left out: {target.name} has no such role"
        for role, count in dropped.items()
    ]
    return (json.dumps(kept, indent=2, ensure_ascii=False) if losses else text), losses


def ignored_texts(draft: Draft, reading: Reading) -> list[str]:
    """Return a sentence for each text that is not sent because a whole conversation is sent instead."""
    if not reading.replaced:
        return []
    target = draft.target
    field = target.request.prompt_field
    losses = []
    if draft.system.strip() and target.traits.system_field is None:
        losses.append(f"The system text is not sent: `{field}` is sent as it stands; write a system message there.")
    if draft.pictures:
        losses.append(f"The images are not sent: `{field}` is sent as it stands; write them there.")
    return losses


def hazards(draft: Draft, reading: Reading) -> list[str]:
    """Return a sentence for each thing that is allowed but seldom meant; none while the draft has faults."""
    if reading.request is None:
        return []
    hints = reading.request.hints()
    if draft.system.strip():
        composed = compose(draft.endpoint, UNWRITTEN, system=draft.system, endpoints=draft.endpoints)
        hints = [*composed.losses, *hints]
    if draft.pictures and not draft.target.traits.documents_images:
        endpoints = " and ".join(other.name for other in draft.endpoints.values() if other.traits.documents_images)
        return [
            f"The API's document names images at {endpoints or 'no endpoint'} only: {draft.endpoint} may refuse them.",
            *hints,
        ]
    return hints
