"""Numbers, durations, amounts of money, sizes, intervals and small tables as text and as HTML.

The one set of formatters of the package: whatever shows a value to a reader takes it from here, so that the same value
reads alike in a figure, a table, a widget and the command line. A value below 0 has a minus sign (U+2212). When it
runs, it imports nothing of famnb.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Iterable, Sequence
from decimal import ROUND_HALF_UP, Decimal, localcontext
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from famnb.stats import Interval


class FormatValue(Protocol):
    """A function that formats a value, with so many digits more than it usually has."""

    def __call__(self, value: float, /, *, more_digits: int = 0) -> str: ...


Row = Sequence[str]

ESTIMATE_MARK = "≈ "
"""Stands before every figure that rests on an estimate."""
MAX_FACTOR = 3
"""A figure whose ends are further apart than this factor is a bound, not an estimate."""
_MAX_MORE_DIGITS = 3
# Further apart in the seventh digit than anything that is measured here.
_SAME = 1e-9
"""Ends this close, relative to their size, differ by the rounding of floats alone."""

_CELL_STYLE = "padding:0.25em 0.8em 0.25em 0;border:none;vertical-align:top"
_RULE = "1px solid rgba(128,128,128,0.35)"
# Notebooks typeset what stands between two of these: "$5 or $6" would become a formula.
_FORMULA_DELIMITER = re.compile(r"\$|\\(?=[(\[]|begin\b)")
# A server may send them to act on a terminal.
_CONTROL_CHARACTER = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def format_number(value: float, *, more_digits: int = 0) -> str:
    """A number with three significant digits, and with all of those before the point: `0.123`, `12.3`, `1,234`."""
    # 99.95 and more have three digits before the point once they are rounded.
    digits = f"{abs(value):,.{more_digits}f}" if abs(value) >= 99.95 else f"{abs(value):.{3 + more_digits}g}"
    return f"{_minus(value)}{digits}"


def format_count(value: float, noun: str = "", *, more_digits: int = 0) -> str:
    """A count in whole numbers: `1,234`; with a noun, `1 call` or `1,234 calls`."""
    digits = f"{_minus(value)}{abs(value):,.{more_digits}f}"
    if not noun:
        return digits
    return f"{digits} {noun}" if value == 1 else f"{digits} {noun}s"


def format_simulated(simulated: int, calls: int) -> str:
    """The sentence that says how many of some calls were answered by a simulated engine."""
    which = "all calls were" if simulated == calls else f"{simulated:,} of {calls:,} calls were"
    return f"Simulated: {which} answered by a simulated engine; timings and texts are made up."


def format_percent(share: float, *, decimals: int = 0) -> str:
    """A share from 0 to 1 in percent: `62%`."""
    return f"{share:.{decimals}%}"


def format_about(number: float) -> str:
    """A number with two significant digits, since an estimate of a sample size has no more: `about 1,200`."""
    return f"about {int(float(format(number, '.1e'))):,}"


def format_share(share: float, *, more_digits: int = 0) -> str:
    """A share from 0 to 1 in percent, with three significant digits: `62.5%`, `100%`."""
    return f"{format_number(100 * share, more_digits=more_digits)}%"


def format_points(difference: float, *, more_digits: int = 0) -> str:
    """A difference of two shares in percentage points: `19 points`."""
    return f"{format_number(100 * difference, more_digits=more_digits)} points"


def format_times(ratio: float, *, more_digits: int = 0) -> str:
    """A ratio: `0.2 times`."""
    return f"{format_number(ratio, more_digits=more_digits)} times"


def format_level(level: float) -> str:
    """The level of an interval in percent, with as many decimals as it has: `95%`, `99.5%`."""
    return f"{level * 100:g}%"


def format_duration(seconds: float, *, brief: bool = False, ms_below: float = 0.1, more_digits: int = 0) -> str:
    """A duration with three significant digits or, if `brief`, as a sentence about one reply has it.

    |              | brief          | else             |
    |--------------|----------------|------------------|
    | below 1 ms   | less than 1 ms | 0.42 ms          |
    | below 0.1 s  | 42 ms          | 42 ms, 4.2 ms    |
    | below 1 s    | 0.42 s         | 0.42 s           |
    | below 10 s   | 2.3 s          | 2.34 s           |
    | below 60 s   | 12.3 s         | 12.3 s           |
    | longer       | 1 min 12 s     | 72.4 s, 2.5 min  |
    | from an hour | 1 h 12 min     | 72.4 min, 2.5 h  |

    `ms_below` is the number of seconds below which milliseconds are used, for text beside an axis in milliseconds.
    """
    if seconds < 0:
        return f"−{format_duration(-seconds, brief=brief, ms_below=ms_below, more_digits=more_digits)}"
    # Each limit is where the last digit would be rounded up into the next unit: 99.6 ms reads "0.10 s", not "100 ms".
    if seconds < ms_below * 0.995:
        value = seconds * 1e3
        if brief:
            return f"{value:.0f} ms" if value >= 1 else "less than 1 ms"
        digits = f"{value:.{more_digits}f}" if value >= 9.95 else f"{value:.{2 + more_digits}g}"
        return f"{digits} ms" if value else "0 s"
    if seconds < (59.95 if brief else 90):
        # Up to 90 s and 90 min rather than 60: "1.2 min" would be one significant digit less.
        return f"{seconds:.{(2 if seconds < (0.995 if brief else 9.995) else 1) + more_digits}f} s"
    if not brief:
        value, unit = (seconds / 60, "min") if seconds < 5400 else (seconds / 3600, "h")
        return f"{value:.{1 + more_digits}f} {unit}"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def format_usd(amount: Decimal | float, *, more_digits: int = 0) -> str:
    """An amount of USD: two decimals from a dollar up, three significant digits below."""
    # Floats added in another order differ in the 16th digit, which is not to decide how half a digit is rounded.
    exact = amount if isinstance(amount, Decimal) else Decimal(f"{float(amount):.12g}")
    sign, exact = _minus(exact), abs(exact)
    # Half is rounded up, as on a bill.
    with localcontext(rounding=ROUND_HALF_UP):
        if exact == 0 or exact >= 1:
            return f"{sign}${exact:,.{2 + more_digits}f}"
        digits = f"{exact:.{2 + more_digits - exact.adjusted()}f}".rstrip("0")
        # "$0.5" is not how an amount is written.
        return f"{sign}${digits}" if len(digits) >= 4 else f"{sign}${exact:.2f}"


def capitalize(text: str) -> str:
    """The text with a capital first letter, the others as they are."""
    return text[:1].upper() + text[1:]


def shorten(text: str, limit: int = 60) -> str:
    """The text in at most `limit` characters, the last of which is an ellipsis if it had more."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def format_size(count: int) -> str:
    """A number of bytes, 1,024 to a kB: `3 kB`, `5.0 MB`."""
    if count >= 1024 * 1024:
        return f"{count / 1024 / 1024:,.1f} MB"
    return f"{max(1, round(count / 1024))} kB" if count else "0 kB"


def format_interval(interval: Interval, format_value: FormatValue, *, factor: float = 1.0) -> str:
    """A value and its interval: `0.42 s (0.35–0.48 s)`; what is not known says so.

    `factor` is how far apart the ends are that hold an estimate for certain: beyond 1 it is marked `≈`, beyond
    MAX_FACTOR only the upper end is shown.
    """
    if not math.isfinite(interval.value):
        bound = f", at most {format_value(interval.high)}" if math.isfinite(interval.high) else ""
        return f"not known{bound}"
    if math.isinf(interval.high) and math.isfinite(interval.low):
        return f"≥ {format_value(interval.low)}"
    mark = "" if is_same(factor, 1.0) else ESTIMATE_MARK
    if not interval.known:
        return f"{mark}{format_value(interval.value)}"
    if factor > MAX_FACTOR:
        return f"at most {format_value(interval.high)}"
    value = format_value(interval.value)
    # By the same figure as the value, from which the mean of equal values may differ in its last bit.
    is_point = is_same(interval.low, interval.high)
    ends = f"all {value}" if is_point else format_range(interval.low, interval.high, format_value)
    return f"{mark}{value} ({ends})"


def format_estimate(
    value: Decimal | float,
    low: Decimal | float,
    high: Decimal | float,
    format_value: FormatValue | None = None,
    *,
    brief: bool = False,
) -> str:
    """A figure that its low and high end hold for certain, an amount of USD unless `format_value` says otherwise.

    `$0.0012` where the ends are one, `≈ $0.0012 ($0.001–$0.0021)`, or `at most $0.0098` where they are more than
    MAX_FACTOR apart, `≥ $0.0012` without a high end; `not known` for NaN. If `brief`, for a cell of a table,
    `≈$0.0012` without the ends.
    """
    format_one = format_usd if format_value is None else format_value
    value, low, high = float(value), float(low), float(high)
    if not math.isfinite(value):
        return "not known"
    if not math.isfinite(high):
        return f"≥ {format_one(low)}" if math.isfinite(low) else f"{ESTIMATE_MARK}{format_one(value)}"
    if is_same(low, high):
        return format_one(value)
    if high > MAX_FACTOR * low:
        return f"at most {format_one(high)}"
    if brief:
        return f"{ESTIMATE_MARK.rstrip()}{format_one(value)}"
    return f"{ESTIMATE_MARK}{format_one(value)} ({format_range(low, high, format_one)})"


def format_sum(value: float, low: float, high: float, *, calls: int, unpriced: int, uncounted: int = 0) -> str:
    """A sum of costs in USD, of `calls` calls: `≥ $0.12 (28 of 29 calls without a price)`.

    Where `unpriced` calls have no price, or `uncounted` ones no token counts, the sum is only known to be no less than
    the low end of what is known.
    """
    if not unpriced + uncounted:
        return format_estimate(value, low, high)
    reasons = {"without a price": unpriced, "without token counts": uncounted}
    gaps = " and ".join(f"{count:,} of {format_count(calls, 'call')} {why}" for why, count in reasons.items() if count)
    return f"≥ {format_usd(low)} ({gaps})" if math.isfinite(low) else f"not known ({gaps})"


def format_range(low: float, high: float, format_value: FormatValue) -> str:
    """The two ends of an interval, their common unit once: `0.35–0.48 s`, `−20 to 50 ms`.

    Ends that would read alike have as many more digits as tell them apart; if none do, `all 0.2`.
    """
    if is_same(low, high):
        return f"all {format_value(low)}"
    if math.isinf(low) and math.isinf(high):
        return "without a limit"
    if math.isinf(high):
        return f"≥ {format_value(low)}"
    if math.isinf(low):
        return f"≤ {format_value(high)}"
    for more_digits in range(_MAX_MORE_DIGITS + 1):
        first, last = (format_value(end, more_digits=more_digits) for end in (low, high))
        if first != last:
            break
    else:
        return f"all {format_value(low)}"
    unit = last.rpartition(" ")[2]
    if " " in last and first.endswith(f" {unit}"):
        first = first.removesuffix(f" {unit}")
    # A dash beside a minus sign would be hard to read.
    return f"{first} to {last}" if low < 0 else f"{first}–{last}"


def is_same(low: float, high: float) -> bool:
    """Whether two ends differ by no more than the rounding of floats."""
    return math.isclose(low, high, rel_tol=_SAME, abs_tol=0.0)


def _minus(value: float | Decimal) -> str:
    return "−" if value < 0 else ""


def format_table(head: Row, rows: Iterable[Row], *, left: int = 1) -> str:
    """A table as lines of text: the first `left` columns are aligned left, the others right."""
    lines = [list(head), *map(list, rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column < left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def html_table(head: Row, rows: Iterable[Row], *, left: int = 1) -> str:
    """The same table as HTML that takes its colours from the page around it; every cell is text, never markup."""

    def line(cells: Row, tag: str, style: str) -> str:
        elements = (
            f'<{tag} style="text-align:{"left" if column < left else "right"};{_CELL_STYLE};{style}">'
            f"{escape_html(cell).replace('_', '_<wbr>') if tag == 'th' else escape_html(cell)}</{tag}>"
            for column, cell in enumerate(cells)
        )
        return f'<tr style="background:none">{"".join(elements)}</tr>'

    body = "".join(line(row, "td", f"border-top:{_RULE}") for row in rows)
    return (
        '<div style="overflow-x:auto"><table style="border-collapse:collapse;font-variant-numeric:tabular-nums">'
        f"<thead>{line(head, 'th', 'font-weight:600')}</thead><tbody>{body}</tbody></table></div>"
    )


def html_paragraphs(lines: Iterable[str]) -> str:
    """Lines of text as HTML paragraphs."""
    return "".join(f'<p style="margin:0.35em 0">{escape_html(line)}</p>' for line in lines)


def escape_html(text: str) -> str:
    """HTML that shows exactly this text in a notebook, amounts in dollars included."""
    return _FORMULA_DELIMITER.sub(r"<span>\g<0></span>", html.escape(text))


def escape_controls(text: str) -> str:
    r"""Return a text with escapes such as `\x1b` for what would act on a terminal or reorder what it shows.

    Line feeds and tabs stay.
    """
    return _CONTROL_CHARACTER.sub(lambda match: match[0].encode("unicode_escape").decode(), text)
