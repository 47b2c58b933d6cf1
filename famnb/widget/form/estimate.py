"""What a request will use and cost, said before it is sent."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from famnb.client.client import BaseClient
from famnb.formatting import ESTIMATE_MARK, format_count, format_usd
from famnb.record import Ledger
from famnb.record.costs import Ceiling, ceiling
from famnb.record.price import service_names
from famnb.record.serialize import input_chars
from famnb.record.token_estimates import NUMBERS, PRIOR, TokenRatio, tokens_of_text
from famnb.request import Request


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

    def estimate(self, request: Request, client: BaseClient) -> Estimate:
        """Return the input tokens of a client's request and the most that it can cost, as far as they are known."""
        model = str(getattr(request, "model", ""))
        characters = input_chars(request)
        most = _ceiling(request, client)
        if characters is None:
            tokens, basis = "", "images and stored responses are tokens of which no number is known"
        else:
            ratio = self._ratio(model)
            count, low, high = tokens_of_text(characters, ratio, NUMBERS)
            tokens = f"{ESTIMATE_MARK}{format_count(count, 'token')} in"
            source = f"{ratio.n:,} recorded replies" if ratio.n else "4 characters a token"
            basis = f"input: {low:,} to {high:,} tokens, by {source}"
        if most.usd is None:
            # The reason begins with what is missing; the rest says what to do.
            cost = "cost unknown"
            basis = f"{basis}; cost: {most.reason}"
        else:
            cost = f"at most {format_usd(most.usd)}"
            basis = f"{basis}; cost: if the answer has all of {format_count(most.output_tokens or 0, 'token')}"
        return Estimate(" · ".join(part for part in (tokens, cost) if part), basis)

    def estimate_all(self, requests: Sequence[tuple[Request, BaseClient]]) -> Estimate:
        """Return the input tokens of several clients' requests together, and the most that they can cost."""
        estimates = [self.estimate(request, client) for request, client in requests]
        if len(estimates) == 1:
            return estimates[0]
        counts = [self._input_tokens(request) for request, _ in requests]
        known = [count for count in counts if count is not None]
        tokens = f"{ESTIMATE_MARK}{format_count(sum(known), 'token')} in" if len(known) == len(counts) else ""
        costs = [_ceiling(request, client).usd for request, client in requests]
        total = sum((cost for cost in costs if cost is not None), Decimal(0))
        cost = "cost unknown" if None in costs else f"at most {format_usd(total)}"
        help = "\n".join(dict.fromkeys(estimate.help for estimate in estimates))
        return Estimate(" · ".join(part for part in (tokens, cost) if part), help)

    def _input_tokens(self, request: Request) -> int | None:
        characters = input_chars(request)
        ratio = self._ratio(str(getattr(request, "model", "")))
        return None if characters is None else tokens_of_text(characters, ratio, NUMBERS)[0]

    def _ratio(self, model: str) -> TokenRatio:
        if model not in self._ratios:
            fits: dict[str | None, Any] = dict(self._ledger.fits(model)) if self._ledger is not None else {}
            # Which service will answer is not known before it does: the one with most replies is the likeliest.
            self._ratios[model] = max((fit.input for fit in fits.values()), key=lambda ratio: ratio.n, default=PRIOR)
        return self._ratios[model]


def _ceiling(request: Request, client: BaseClient) -> Ceiling:
    return ceiling(request, service_names(client.base_url(request.endpoint), client.profile.name))
