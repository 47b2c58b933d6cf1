"""A summary in plain words: one sentence that says the trade-off, then what is clear, what is not, and reservations."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import pandas as pd

from famnb import stats
from famnb.experiment.comparison import MAX_APART_S, NOTABLE, RUN_NOISE
from famnb.experiment.metrics import COST, MEAN, MEDIAN, RATIO, SHARE, SUCCESS, Failed, find_metric
from famnb.experiment.resume import ANSWERED, failures
from famnb.formatting import (
    ESTIMATE_MARK,
    MAX_FACTOR,
    FormatValue,
    capitalize,
    format_about,
    format_count,
    format_duration,
    format_estimate,
    format_level,
    format_percent,
    format_range,
    format_simulated,
    format_times,
    is_same,
    shorten,
)
from famnb.frame.spend import is_unpriced
from famnb.record.token_estimates import USAGE_HINT

Row: TypeAlias = Mapping[str, Any]
"""A row of the table that `comparison.judge` makes."""

MAX_SPAN_S = 3600.0
"""Calls of a longer time are of different hours."""
MANY_TIMES = 5
"""A call that takes more than this many times the median of its variant is slow by itself."""
MAX_SLOW = 0.03
"""Share of slow calls of a variant above which the first sentence says so."""
MAX_REFUSED = 0.1
"""From this share of refused requests on, the first sentence says so: the service was not well."""
MAX_UNREPORTED = 0.1
"""Share of calls without reported tokens above which the first sentence says so: no cost is compared then."""
MAX_WORDS = 29
"""Words of the first sentence: what somebody can repeat."""
MAX_NAME_CHARS = 40
"""Characters of a variant's name in a sentence."""
_FRACTIONS = {
    0.1: "about a tenth as much",
    0.2: "about a fifth as much",
    0.25: "about a quarter as much",
    1 / 3: "about a third as much",
    0.5: "about half as much",
}
_ABOUT = 0.1
"""A ratio this close to a fraction, as a share of the larger, is about that fraction."""
_PHRASES = {
    "ttft_s": ("starts {size} sooner", "starts {size} later", "is faster"),
    "ttfa_s": ("shows its first words {size} sooner", "shows its first words {size} later", "is faster"),
    "e2e_s": ("finishes {size} sooner", "finishes {size} later", "is faster"),
    "output_tokens": ("writes {size} tokens fewer", "writes {size} tokens more", ""),
    SUCCESS: ("fails {size} more often", "fails {size} less often", "fails more"),
    COST: ("costs {size} less a call", "costs {size} more a call", "is cheaper"),
    "score": ("scores {size} lower", "scores {size} higher", "answers as well"),
    "": ("has a {title} {size} lower", "has a {title} {size} higher", ""),
}
"""Of a metric: what is said of less, of more, and what is asked where the data do not tell; "" is any other metric."""
_QUESTIONS = {"score": ("answers as well", "score"), COST: ("costs less", "cost"), "e2e_s": ("finishes sooner", "time")}
"""What a choice between two variants rests on: what is asked of it where the data do not tell, and its noun."""


# What the figures are of


def reservations(rows: pd.DataFrame, *, warmups: int, failed: Failed, has_scores: bool) -> Iterator[str]:
    """Yield what the figures leave out, and reservations about the rest, a sentence each."""
    simulated = int(rows["simulated"].fillna(False).sum()) if "simulated" in rows else 0
    if simulated:
        yield format_simulated(simulated, int(rows["simulated"].notna().sum()))
    if refusals := count_refusals(rows):
        shares = ", ".join(f"{quote(name)} {refused:,} of {sent:,}" for name, (refused, sent) in refusals.items())
        yield f"Requests that were refused or broke off, and were sent again: {shares}; they are in no figure."
    if slow := find_slow_calls(rows):
        shares = ", ".join(f"{quote(name)} {len(times):,} of {count:,}" for name, (times, count) in slow.items())
        longest = format_duration(max(times.max() for times, _ in slow.values() if len(times)))
        yield f"Calls that took more than {MANY_TIMES} times the median of their variant: {shares}, up to {longest}."
    if warmups:
        yield f"{format_count(warmups, 'warm-up call')} left out."
    is_failure = failures(rows)
    open_calls = int((~rows["status"].isin(ANSWERED) & ~is_failure).sum())
    if open_calls:
        yield f"{open_calls:,} of {len(rows):,} planned calls are not answered yet; the figures are of the others."
    for variant, calls in rows.groupby("variant", observed=True):
        failed_calls = calls[is_failure[calls.index]]
        if len(failed_calls):
            counts = failed_calls["error"].astype("string").fillna("no error named").value_counts()
            errors = ", ".join(f"{error} {count:,}" for error, count in counts.items())
            yield f"{len(failed_calls):,} of {len(calls):,} calls of {quote(variant)} failed ({errors})."
    if is_failure.any():
        in_scores = (
            '; they count as the lowest score there can be, 0 of yes and no (failed="drop" leaves them out)'
            if failed == "zero"
            else ', and in no score (failed="zero" counts them as the lowest there can be)'
        )
        yield (
            f"Failed calls are in no time or token count{in_scores if has_scores else ''}; what they cost is in the "
            "cost of the answers."
        )
    for name, (count, answers) in count_unreported(rows).items():
        if count:
            share = f"{count:,} of {answers:,} answers of {quote(name)} did not report their tokens"
            yield f"{share}; they may hold reasoning that nobody saw, up to their cap. {USAGE_HINT}."
    lacks_price = is_unpriced(rows) & rows["output_tokens"].notna()
    if lacks_price.any():
        share = f"{int(lacks_price.sum()):,} of {len(rows):,} calls"
        yield f"{share} have no price and are in no cost; famnb.prices.set gives their model one."
    for variant, calls in rows.groupby("variant", observed=True):
        incomplete = int((calls["status"] == "incomplete").sum())
        if incomplete:
            subject = f"{format_count(incomplete, 'answer')} of {quote(variant)}"
            yield f"{subject} did not come to an end, such as at a token cap; they count as they are."


def count_refusals(rows: pd.DataFrame) -> dict[str, tuple[int, int]]:
    """How many requests of each variant were sent again, and how many were sent; empty if none was sent again."""
    if not {"attempts", "cell"} <= set(rows.columns):
        return {}
    # Those of calls that no service took are in no row, see `resume.join_calls`.
    refused = rows["cell"].map(rows.attrs.get("refused", {})).fillna(0).astype(int)
    answered = (rows["attempts"].fillna(0) > 0).astype(int)
    sent = refused + rows["attempts"].fillna(0).astype(int)
    sums = pd.DataFrame({"again": sent - answered, "sent": sent}).groupby(rows["variant"], observed=True).sum()
    return {str(name): (again, count) for name, again, count in sums.itertuples()} if sums["again"].any() else {}


def find_slow_calls(rows: pd.DataFrame) -> dict[str, tuple[pd.Series[float], int]]:
    """The times of each variant's calls that took many times its median, and how many it has; empty if none did."""
    times = rows["e2e_s"].where(rows["status"].isin(ANSWERED)).dropna().astype(float)
    groups = times.groupby(rows["variant"], observed=True)
    slow = {str(name): (part[part > MANY_TIMES * part.median()], len(part)) for name, part in groups}
    return slow if any(len(part) for part, _ in slow.values()) else {}


def troubles(rows: pd.DataFrame, primary: str) -> Iterator[str]:
    """Yield what readers of the first sentence have to know besides, in a clause each."""
    refusals = count_refusals(rows).values()
    again, sent = (sum(counts[index] for counts in refusals) for index in (0, 1))
    if again > MAX_REFUSED * sent:
        yield f"{format_percent(again / sent)} of requests were refused"
    if find_metric(primary).is_speed and (slow := find_slow_calls(rows)):
        counts = sorted(((len(times), name) for name, (times, _) in slow.items()), reverse=True)
        most, name = counts[0]
        # A few of many are chance; and where others have about as many, it is the prompts.
        if most > max(2 * counts[-1][0], MAX_SLOW * slow[name][1]):
            yield f"{most} of {slow[name][1]} calls of {quote(name)} took over {MANY_TIMES} times its median"
    # Of a cost that is compared, the sentence says so itself.
    if find_metric(primary).is_score or find_metric(primary).is_speed:
        unreported = count_unreported(rows)
        uncertain = [(name, *counts) for name, counts in unreported.items() if counts[0] > MAX_UNREPORTED * counts[1]]
        if len(uncertain) == 1:
            name, count, of = uncertain[0]
            if count == of:
                yield f"{quote(name)} reported no token counts, so its cost is unknown"
            else:
                yield f"{quote(name)} did not report the tokens of {count:,} of {of:,} calls, so its cost is uncertain"
        elif uncertain:
            count, of = map(sum, zip(*unreported.values(), strict=True))
            yield f"{count:,} of {of:,} calls did not report their tokens, so costs are uncertain"


def count_unreported(rows: pd.DataFrame) -> dict[str, tuple[int, int]]:
    """How many answers of each variant came without their tokens, and how many there are.

    Of calls that broke off nobody expects them. A frame that was read from a file may not say it; then empty.
    """
    if "output_tokens_source" not in rows:
        return {}
    is_unreported = (rows["output_tokens_source"] == "estimated")[rows["status"].isin(ANSWERED)].fillna(False)
    groups = is_unreported.groupby(rows["variant"], observed=True)
    return {str(name): (int(part.sum()), len(part)) for name, part in groups}


def judging(rows: Sequence[Row], why: str, *, slo: Mapping[str, float], level: float) -> Iterator[str]:
    """Yield what the limits of an objective are, which metric decides and how differences are judged."""
    if slo:
        metrics = {find_metric(name): limit for name, limit in slo.items()}
        limits = " and ".join(
            f"{metric.title} at most {metric.format_value(limit)}" for metric, limit in metrics.items()
        )
        yield f"Goodput is the share of calls that were answered with {limits}."
    primary = [row for row in rows if row["primary"]]
    if not primary:
        return
    title, share, others = find_metric(primary[0]["metric"]).title, format_level(level), len(rows) - len(primary)
    family = "judged alone" if len(primary) == 1 else f"its {len(primary):,} comparisons judged together (Holm)"
    rest = f"; the other {others:,} comparisons are judged together (Holm)" if others > 1 else ""
    yield f"The primary metric is {title} ({why}), {family} at {share}{rest}."
    yield "Differences are means of paired differences over prompts unless another statistic is named."


def cautions(reasons: Iterable[tuple[str, int, str]], medians: Sequence[str]) -> Iterator[str]:
    """Yield which means are not known well, a sentence for each reason.

    `reasons` has the name of a metric, the n of one of its means and what speaks against it, if anything does;
    `medians` are the metrics of which the median is compared instead.
    """
    if medians:
        yield f"Medians of {_list(medians)} are compared: too few values decide the means."
    # Of several means of one metric that of the fewest values says most.
    worst = {title: caution for title, _, caution in sorted(reasons, key=lambda reason: -reason[1]) if caution}
    for caution in dict.fromkeys(worst.values()):
        titles = [title for title, of_title in worst.items() if of_title == caution]
        yield f"Means of {_list(titles)} may be off: {caution}."


def timing(rows: pd.DataFrame, compared: Sequence[Row]) -> Iterator[str]:
    """Yield what is to be said of when calls were made and what answered them, a sentence each."""
    times = {(row["first"], row["second"]): row["apart_s"] for row in compared}
    for (first, second), apart_s in times.items():
        if apart_s > MAX_APART_S and len(times) == 1:
            # The first sentence says so.
            yield "A new experiment that asks both at one time can tell whether they differ."
        elif apart_s > MAX_APART_S:
            apart = format_duration(apart_s)
            yield f"{quote(second)} and {quote(first)} were asked {apart} apart: nothing is claimed between them."
    answered = rows[rows["status"].isin(ANSWERED)]
    for column, subject in (("reply_model", "The model"), ("service", "The service")):
        if column not in rows:
            continue
        for variant, values in answered.groupby("variant", observed=True)[column]:
            if len(names := list(values.dropna().astype(str).unique())) > 1:
                yield f"{subject} behind {quote(variant)} changed: {', then '.join(names)}."
    runs = {(row["first_runs"], row["second_runs"]) for row in compared}
    if (1, 1) in runs:
        yield (
            "With one run a side, the intervals leave out how runs differ by themselves; of times "
            f"{format_percent(RUN_NOISE)} is assumed for it."
        )
    elif "run" in rows:
        yield "Intervals have in them how runs differ by themselves."
    elif "started_at" in rows and len(starts := answered["started_at"].dropna()):
        first, last = starts.min(), starts.max()
        if (last - first).total_seconds() > MAX_SPAN_S:
            yield f"Calls were made from {first:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M} UTC."


def looking(look: stats.Look, *, exploratory: bool, primary: str) -> Iterator[str]:
    """Yield what was decided before the calls and what was not, a sentence each."""
    if exploratory:
        yield f"Exploratory: {find_metric(primary).title} was chosen after the calls, so it is judged with all others."
    if look.method:
        of = f" of {look.planned}" if look.planned else ""
        yield f"Look {look.number}{of} at growing data: clear is p < {1 - look.nominal:.2g} ({look.method})."


def quote(name: Any) -> str:
    """A variant's name for a sentence: short, and in quotes if it could be read as words of it."""
    text = shorten(str(name), MAX_NAME_CHARS)
    return f'"{text}"' if any(mark in text for mark in (",", ";", ":", " ")) else text


# What they show


def describe_pairs(rows: Sequence[Row], *, level: float) -> tuple[list[str], ...]:
    """The verdict, and what the data say of all other metrics: a sentence for each metric and two variants.

    The verdict is of the primary metric, of how reliably and at what cost. Where one variant fails more often than
    another, that comes first: all else is of what was answered.
    """
    fails_more = [SUCCESS] * any(row["clear"] for row in rows if row["metric"] == SUCCESS)
    names = [*fails_more, *(row["metric"] for row in rows if row["primary"]), SUCCESS, "cost_usd"]
    lead = list(dict.fromkeys(names))
    shown = [row for row in rows if row["primary"] or row["n"] >= stats.min_values(level)]
    verdict = sorted((row for row in shown if row["metric"] in lead), key=lambda row: lead.index(row["metric"]))
    others = [row for row in shown if row["metric"] not in lead]
    return tuple([PairFinding(row, level).sentence() for row in part] for part in (verdict, others))


def headline(
    rows: Sequence[Row],
    troubles: Iterable[str],
    *,
    level: float,
    exploratory: bool = False,
    failed: Failed = "zero",
    has_scores: bool = False,
) -> str:
    """The trade-off in one sentence of at most MAX_WORDS words, from all rows of `comparison.judge`.

    The first of `troubles` stands at its end; `failed` says how failed calls count in scores, and `has_scores` whether
    answers have any, which need not be compared.
    """
    findings = [PairFinding(row, level, failed) for row in rows]
    primary = [finding for finding in findings if finding.row["primary"]]
    counts = [int(finding.row["n"]) for finding in primary]
    if not any(counts):
        return "No prompt is answered by two variants: there is nothing to compare."
    if max(counts) == 1:
        return "Only one prompt was compared: n = 1 cannot show how the variants differ."
    prefix, clauses = "Exploratory: " if exploratory else "", list(troubles)
    # What is said of the cost in a clause of its own is no question.
    has_cost = not any("cost" in clause for clause in clauses)
    options = []
    if len(primary) == 1:
        questions = [_QUESTIONS[name][0] for name in _open_questions(findings, primary[0], has_cost=has_cost)]
        options = [
            _trade_off(findings, most, open_questions, has_size=size)
            for most, open_questions, size in itertools.product((3, 2, 1), (questions, []), (True, False))
        ]
    elif all(finding.row["baseline"] for finding in primary):
        by_pair = [[other for other in findings if other.second == finding.second] for finding in primary]
        doubts = ("long", "whole", "brief", "bare")
        options = [_trade_offs_of(by_pair, most, doubt, has_cost=has_cost) for most in (3, 2, 1) for doubt in doubts]
    if len(primary) > 1:
        options.append(_rank(primary))
    sentences = [f"{prefix}{text}{end}." for end in [*(f"; {clause}" for clause in clauses), ""] for text in options]
    sentence = next((text for text in sentences if len(text.split()) <= MAX_WORDS), sentences[-1])
    whole = f"{sentence[:-1]}; no score judges the answers."
    is_apart = any(finding.row["apart_s"] > MAX_APART_S for finding in primary)
    return sentence if has_scores or is_apart or len(whole.split()) > MAX_WORDS else whole


def _open_questions(findings: Sequence[PairFinding], primary: PairFinding, *, has_cost: bool) -> Iterator[str]:
    """Yield which of _QUESTIONS the data do not answer, that of the primary metric apart."""
    for name in _QUESTIONS:
        found = [finding for finding in findings if finding.kind == name]
        # "Is faster" asks how soon the answer ends as well.
        is_said = primary in found or (name == "e2e_s" and primary.metric.is_speed and not primary.row["clear"])
        is_open = any(finding.row["n"] and not (finding.row["clear"] or finding.is_equal) for finding in found)
        if is_open and not is_said and (has_cost or name != COST):
            yield name


def _gains(findings: Sequence[PairFinding], most: int, *, has_first: bool, has_size: bool) -> str:
    """What the second of two variants clearly gains and loses, `most` clauses; empty if nothing is clear.

    With `has_first` it says than which, and with `has_size` of what value the first of them is.
    """
    scores = [finding.metric.name for finding in findings if finding.metric.is_score]
    primary = [finding.metric.name for finding in findings if finding.row["primary"]]
    # Where no score judges the answers, how long they are says why they cost less.
    order = [*primary, SUCCESS, *scores, COST, "e2e_s", "ttft_s", *([] if scores else ["output_tokens"])]
    by_name = {finding.metric.name: finding for finding in findings if finding.row["clear"]}
    clear = [by_name[name] for name in dict.fromkeys(order) if name in by_name]
    if "e2e_s" in by_name:
        # The first token says the same again.
        clear = [finding for finding in clear if finding.metric.name != "ttft_s" or finding.row["primary"]]
    # What fails more often stands first: all else is of what was answered.
    clear = sorted(clear[:most], key=lambda finding: finding.metric.name != SUCCESS)
    text = ""
    for index, finding in enumerate(clear):
        is_turn = index and (finding.better == finding.second) != (clear[index - 1].better == finding.second)
        is_turn = is_turn and finding.metric.better != "neither"
        joint = "" if not index else ", but " if is_turn else ", " if index < len(clear) - 1 else " and "
        if finding.metric.name == SUCCESS:
            share, of_first = (format_percent(1 - finding.row[f"{side}_value"]) for side in ("second", "first"))
            text += f"{joint}fails in {share} of calls ({finding.first}: {of_first})"
            continue
        text += f"{joint}{finding.claim()}"
        if finding.metric.name == COST and SUCCESS in by_name:
            text += " per answer"
        if finding.metric.is_score and scores[1:]:
            text += f" on {finding.metric.title.removeprefix('score ')}"
        if has_first and not index:
            text += f" {finding.conjunction} {finding.first}"
            if has_size and not (finding.is_ratio or finding.row["estimated"]):
                text += f" ({finding.metric.format_value(finding.row['first_value'])})"
        if finding.metric.is_score and finding.failed == "zero" and clear[0].metric.name == SUCCESS:
            text += " (failures included)"
    return text


def _trade_off(findings: Sequence[PairFinding], most: int, questions: Sequence[str], *, has_size: bool) -> str:
    """What the second of two variants gains and loses, and what is not known of the primary metric and `questions`.

    With `has_size` it says of what value the first loss or gain is, and how many more prompts would show.
    """
    primary = next(finding for finding in findings if finding.row["primary"])
    gains = _gains(findings, most, has_first=True, has_size=has_size)
    text = f"{primary.second} {gains}" if gains else ""
    unclear = f"; whether it {_list(questions, 'or')} is unclear" if questions else ""
    if primary.row["clear"]:
        return text + unclear
    doubt = primary.doubt(alone=not gains, has_size=has_size, questions=questions)
    doubt += "" if all(question in doubt for question in questions) else unclear
    return f"{text}; {doubt}" if gains else doubt


def _trade_offs_of(pairs: Sequence[Sequence[PairFinding]], most: int, doubt: str, *, has_cost: bool) -> str:
    """What each variant gains and loses beside the baseline, and what is unclear: "long", "whole", "brief" or "bare".

    "Brief" names what is unclear of a variant beside its gains and losses, "bare" only if it is the primary metric.
    """
    parts: list[str] = []
    unclear = []
    for findings in pairs:
        primary = next(finding for finding in findings if finding.row["primary"])
        gains = _gains(findings, most, has_first=not parts, has_size=False)
        nouns = [_QUESTIONS[name][1] for name in _open_questions(findings, primary, has_cost=has_cost)]
        settled = primary.doubt(alone=not gains) if primary.is_settled else ""
        if gains and doubt == "brief" and not (primary.better or settled):
            nouns.insert(0, _QUESTIONS[primary.kind][1] if primary.kind in _QUESTIONS else primary.metric.title)
        elif not (primary.better or settled):
            unclear.append(primary)
        rest = f", its {_list(nouns)} unclear" if gains and nouns and doubt != "bare" else ""
        claims = [f"{primary.second} {gains}{rest}"] if gains else []
        parts += [*claims, *([settled] if settled and not (gains and doubt == "bare") else [])]
    apart_count = sum(finding.row["apart_s"] > MAX_APART_S for finding in unclear)
    if apart_count:
        parts.append(f"{apart_count} of {len(pairs)} pairs were asked at different times")
    elif unclear:
        names = _list([finding.second for finding in unclear], "or")
        first, title = unclear[0].first, unclear[0].metric.title
        question = unclear[0].question or f"differs in {title}"
        if doubt in ("brief", "bare") and parts:
            is_last = len(unclear) == 1 and parts[-1].startswith(f"{names} ")
            parts.append(f"whether {'it' if is_last else names} {question} is unclear")
        else:
            count = format_count(max(int(finding.row["n"]) for finding in unclear), "prompt")
            link = ("as" if unclear[0].metric.is_score else "than") if unclear[0].question else "from"
            text = f"{count} cannot tell whether {names} {question} {link} {first}"
            open_pairs = [finding for finding in unclear if finding.row["needed"] > finding.row["n"]]
            widest = max(open_pairs, key=lambda finding: int(finding.row["needed"]), default=None)
            parts.append(f"{text}: {widest.effort()}" if widest and doubt == "long" else text)
    return "; ".join(parts)


def _rank(findings: Sequence[PairFinding]) -> str:
    """How many of many pairs show what of the primary metric."""
    one_baseline = all(finding.row["baseline"] for finding in findings)
    noun, base = ("variant", findings[0].first) if one_baseline else ("pair", "the other")
    unclear = [finding for finding in findings if not finding.row["clear"]]
    counts = {
        "better": sum(finding.better == finding.second for finding in findings),
        "worse": sum(finding.better == finding.first for finding in findings),
    }
    claims = " and ".join(f"{count} {adverb}" for adverb, count in counts.items() if count)
    claims = claims.replace(" ", " is " if claims.startswith("1 ") else " are ", 1)
    title = findings[0].metric.title
    text = f"Of {format_count(len(findings), noun)}, {claims} than {base} on {title}; " if claims else ""
    if apart_count := sum(finding.row["apart_s"] > MAX_APART_S for finding in unclear):
        return f"{text}{apart_count} of {len(findings)} pairs were asked at different times"
    prompts = format_count(max(int(finding.row["n"]) for finding in findings), "prompt")
    rest = f"the other {len(unclear)}" if claims else f"{format_count(len(unclear), noun)} by {title}"
    return f"{text}{prompts} cannot tell {rest}" if unclear else text.removesuffix("; ")


def trade_offs(rows: Sequence[Row], *, level: float) -> tuple[list[str], list[list[str]]]:
    """The head and the rows of a table of what each variant gained and lost; of many variants some metrics."""
    pairs = list(dict.fromkeys((row["first"], row["second"]) for row in rows))
    is_one = len(pairs) == 1
    lines = []
    # What fails more often stands first: all else is of what was answered.
    for row in sorted(rows, key=lambda row: not (row["metric"] == SUCCESS and row["clear"])):
        metric = find_metric(row["metric"])
        if not row["n"] or not (is_one or row["primary"] or metric.name in ("cost_usd", "e2e_s", SUCCESS)):
            continue
        finding = PairFinding(row, level)
        values = []
        for side in ("first", "second"):
            value, least, most = (row[f"{side}_{end}"] for end in ("value", "least", "most"))
            values.append(format_estimate(value, least, most, metric.format_value, brief=True))
        is_gain = finding.better == finding.second
        result = ("gained" if is_gain else "lost") if finding.better else "not clear"
        result = f"{result}: {finding.reason}" if finding.reason else result
        if row["clear"] and metric.better == "neither":
            result = "differs"
        if row["standing"] not in ("", "unclear") and not (finding.better and is_gain):
            within = f"{row['standing']}, margin {metric.format_difference(row['margin'])}"
            result = f"{result} ({within})" if row["clear"] else within
        title = f"{metric.title}{' (primary)' if row['primary'] else ''}"
        names = [] if is_one else [str(row["second"])]
        difference = f"{'median ' if row['statistic'] == MEDIAN else ''}{format_difference(row)}"
        lines.append([*names, title, *values, difference, result])
    if not lines:
        return [], []
    one_baseline = all(row["baseline"] for row in rows)
    heads = [*pairs[0]] if is_one else [pairs[0][0], "this variant"] if one_baseline else ["first", "second"]
    return [*([] if is_one else ["variant"]), "metric", *heads, "difference", "result"], lines


class Effect(NamedTuple):
    """The statistic of a comparison with its ends, and how it is written."""

    value: float
    low: float
    high: float
    none: float
    """Its value if the two are equal."""
    format_value: FormatValue

    @classmethod
    def of(cls, row: Row, format_value: FormatValue) -> Effect:
        """That of a row; a difference is written by `format_value`."""
        if row["statistic"] == RATIO:
            return cls(row["ratio"], row["ratio_low"], row["ratio_high"], 1.0, format_times)
        return cls(row["difference"], row["low"], row["high"], 0.0, format_value)

    @property
    def range(self) -> str:
        """The interval as text."""
        return format_range(self.low, self.high, self.format_value)


def format_difference(row: Row, format_value: FormatValue | None = None) -> str:
    """A compared statistic as a figure with its interval: `−0.41 s (−0.43 to −0.38 s)`, `≈ 0.2 times (0.15–0.28)`."""
    effect = Effect.of(row, format_value or find_metric(row["metric"]).format_difference)
    if math.isnan(effect.value):
        return "–"
    is_guess = any(row[f"{side}_most"] > MAX_FACTOR * row[f"{side}_least"] for side in ("first", "second"))
    if row["estimated"] and (is_guess or (row["statistic"] == RATIO and effect.high > MAX_FACTOR * effect.low)):
        # A middle of ends so far apart would be a guess.
        return f"{ESTIMATE_MARK}{effect.range}"
    sign = "+" if effect.none == 0 < effect.value else ""
    figure = f"{ESTIMATE_MARK * bool(row['estimated'])}{sign}{effect.format_value(effect.value)}"
    return figure if math.isnan(effect.low) else f"{figure} ({effect.range})"


def format_sureness(row: Row) -> str:
    """Whether a difference is clear, and the p-value and n behind that: `clear (p = 0.031, 12 pairs)`."""
    p_value = "" if math.isnan(row["p_adjusted"]) else f"{format_p(row['p_adjusted'])}, "
    return f"{'clear' if row['clear'] else 'not clear'} ({p_value}{format_count(row['n'], 'pair')})"


def format_p(p_value: float) -> str:
    """A p-value: `p = 0.031`, `p < 0.001`."""
    return "p < 0.001" if p_value < 0.001 else f"p = {p_value:.2g}"


class PairFinding:
    """What two variants show of one metric, in words."""

    def __init__(self, row: Row, level: float, failed: Failed = "zero") -> None:
        self.row = row
        self.failed = failed
        """How failed calls count in scores."""
        self.level = level
        self.first, self.second = quote(row["first"]), quote(row["second"])
        self.metric = find_metric(row["metric"])
        self.effect = effect = Effect.of(row, self.metric.format_difference)
        self.is_ratio = row["statistic"] == RATIO
        self.is_less = effect.value < effect.none
        """Whether the second has less than the first."""
        # "0.2 s sooner" has no sign, and neither has its interval; a ratio has none anyway.
        self.size = effect
        if self.is_less and not effect.none:
            self.size = effect._replace(value=-effect.value, low=-effect.high, high=-effect.low)
        self.is_same = is_same(effect.low, effect.high)
        """Whether the effect is the same in every pair."""
        is_unchanged = row["statistic"] == SHARE and row["share"] == row["share_more"] == 0
        self.is_equal = is_unchanged or (self.is_same and effect.low == effect.none)
        """Whether no pair differs."""
        is_as_good = row["standing"] in ("equivalent", "not worse")
        is_as_good |= self.is_equal and not row["apart_s"] > MAX_APART_S
        self.is_settled = is_as_good and not row["clear"]
        """Whether no difference is clear, yet the second is shown not to be worse, or is the same in all pairs."""
        self.conjunction = "as" if row["metric"] == COST and self.is_ratio else "than"
        self.kind = "score" if self.metric.is_score else self.metric.name
        self.less, self.more, self.question = _PHRASES.get(self.kind, _PHRASES[""])

    @property
    def better(self) -> str | None:
        """The variant that is clearly better; None if neither is."""
        if not self.row["clear"]:
            return None
        return self.second if self.is_less == (self.metric.better == "less") else self.first

    def sentence(self) -> str:
        """The claim, or what the pairs cannot tell, with the figures behind it."""
        row, count = self.row, format_count(self.row["n"], "pair")
        p_value = "" if math.isnan(row["p_adjusted"]) else format_p(row["p_adjusted"])
        # The notes say which statistic is the usual one.
        statistic = "" if row["statistic"] == MEAN else row["statistic"]
        if row["clear"]:
            statement = f"{self.second} {self.claim()} {self.conjunction} {self.first}"
            interval = f"{format_level(self.level)} interval {self.size.range}"
            interval = "the same in every pair" if self.is_same else interval
        else:
            statement = f"the same in all {count}" if self.is_equal else self.doubt(alone=True, has_size=True)
            interval = "" if self.is_equal and self.is_same else self._explain_interval()
        figures = ", ".join(filter(None, [statistic, interval, p_value, f"n = {count}"]))
        values = ""
        # Estimates have ends of their own, which the table of variants shows.
        if row["clear"] and not row["estimated"]:
            values = " against ".join(self.metric.format_value(row[f"{side}_value"]) for side in ("second", "first"))
            if row["statistic"] == MEDIAN:
                share, word = (row["share"], "less") if self.is_less else (row["share_more"], "more")
                values += f", {word} in {format_percent(share)} of prompts"
            values += "; "
        return f"{capitalize(self.metric.title)}: {statement} ({values}{figures})."

    def claim(self) -> str:
        """A clear difference as a verb, with its size."""
        title, amount = self.metric.title, self.size
        size = amount.format_value(amount.value)
        if self.row["estimated"] and amount.high <= MAX_FACTOR * amount.low:
            size = f"{ESTIMATE_MARK}{size}"
        elif self.row["estimated"]:
            # Of estimates too far apart for a figure, at which end it is the smallest.
            is_most = amount.none and self.is_less
            size = (
                f"{'at most' if is_most else 'at least'} {amount.format_value(amount.high if is_most else amount.low)}"
            )
        if not self.is_ratio:
            text = (self.less if self.is_less else self.more).format(size=size, title=title)
        elif self.metric.name == COST:
            ratio = math.nan if self.row["estimated"] else self.size.value
            words = (word for fraction, word in _FRACTIONS.items() if math.isclose(ratio, fraction, rel_tol=_ABOUT))
            text = f"costs {next(words, f'{size} as much')}"
        else:
            text = f"has {size} the {title}"
        return f"typically {text}" if self.row["statistic"] == MEDIAN else text

    def doubt(self, *, alone: bool, has_size: bool = False, questions: Sequence[str] = ()) -> str:
        """What the pairs do not show of a metric, and how many would; or that it is within its margin.

        `questions` are asked as well where the pairs do not tell.
        """
        row, n = self.row, int(self.row["n"])
        margin = self.metric.format_difference(row["margin"]) if row["standing"] else ""
        subject = self.second if alone else "it"
        good = f"{subject} is as good on {self.metric.title} as {self.first}" if alone else "its answers are as good"
        if not (alone or self.metric.is_score):
            good = f"its {self.metric.title} is as good"
        if row["standing"] == "equivalent":
            return f"{good}, within {margin}"
        if row["standing"] == "not worse":
            return f"{subject} is not worse on {self.metric.title} by more than {margin}"
        if row["apart_s"] > MAX_APART_S:
            return (
                f"{self.second} and {self.first} were asked {format_duration(row['apart_s'])} apart: nothing is claimed"
            )
        if self.is_equal:
            title = capitalize(self.metric.title) if alone else self.metric.title
            return f"{title} is the same in all {format_count(n, 'prompt')}"
        would = ""
        if row["estimated"]:
            would = ": not all tokens were reported"
        elif row["needed"] > n:
            # So many are for this metric alone.
            would = f": {self.effort(is_brief=not (alone or questions))}" if has_size else ""
        elif n < (fewest := stats.min_values(self.level)):
            would = f": {fewest} are the fewest that could"
        within = f" within {margin}" if row["standing"] else ""
        if self.question:
            than = f" {'as' if self.metric.is_score else 'than'} {self.first}" if alone else ""
            clauses = [f"{self.question}{than}", *([] if within else questions)]
            question = f"{subject} {_list(clauses, 'or')}"
        else:
            question = f"{f'{self.second} and {self.first}' if alone else 'the two'} differ in {self.metric.title}"
        return f"{format_count(n, 'prompt')} cannot tell whether {question}{within}{would}"

    def effort(self, *, is_brief: bool = False) -> str:
        """How many prompts would show how small a difference, or that it is within its margin."""
        row = self.row
        notable = format_percent(NOTABLE) if self.is_ratio else self.metric.format_difference(row["notable"])
        if is_brief:
            return f"{format_about(row['needed'])} {'would' if row['standing'] else f'could show {notable}'}"
        of = f"a {'score ' if self.metric.is_score else ''}difference of {notable}"
        return f"{format_about(row['needed'])} prompts {'would' if row['standing'] else f'could show {of}'}"

    def _explain_interval(self) -> str:
        """The interval of a difference that is not clear, and why it is not."""
        row, effect = self.row, self.effect
        if math.isnan(effect.low):
            return ""
        mark = ESTIMATE_MARK * bool(row["estimated"])
        facts = f"{format_level(self.level)} interval {mark}{effect.range}"
        if self.is_same:
            facts = f"{effect.format_value(effect.low)} in every pair"
        return f"{facts}, but {self.reason}" if self.reason else facts

    @property
    def reason(self) -> str:
        """Why a difference is not clear though its interval leaves out none; empty otherwise."""
        row, effect = self.row, self.effect
        excludes_none = effect.low > effect.none or effect.high < effect.none
        if row["clear"] or not excludes_none or row["estimated"] or row["apart_s"] > MAX_APART_S:
            return ""
        # The interval of few yes and no is an approximation, the p-value is exact.
        if row["p_value"] >= 1 - self.level:
            return f"{format_p(row['p_value'])} by itself"
        return f"not enough for one of {row['comparisons']} comparisons" if row["comparisons"] > 1 else ""


def _list(names: Sequence[str | None], word: str = "and") -> str:
    """Names in one phrase: `A, B and C`."""
    return f" {word} ".join(filter(None, [", ".join(map(str, names[:-1])), *names[-1:]]))
