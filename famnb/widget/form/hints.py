"""What is said before a request is sent: its tokens and cost, what another endpoint cannot take, what may surprise."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, NamedTuple

from famnb.client.client import BaseClient
from famnb.endpoints import ENDPOINTS, Endpoint, Endpoints, compose
from famnb.formatting import ESTIMATE_MARK, format_count, format_usd
from famnb.record import Ledger
from famnb.record.price_book import ceiling
from famnb.record.serialize import input_chars
from famnb.record.token_estimates import NUMBERS, PRIOR, TokenRatio, tokens_of_text
from famnb.request import Request
from famnb.request.message_parts import nearest_effort
from famnb.request.neutral import FieldPath
from famnb.widget.form.draft import UNWRITTEN, Draft, Reading, write_fields
from famnb.widget.form.fields import EXACT, MODEL, FieldTexts, request_fields


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
            most = ceiling(request, client.profile.name)
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
