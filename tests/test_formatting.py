"""Values as text: units, digits, signs, and tables that align."""

import math
from decimal import Decimal

import pytest

from famnb.formatting import (
    escape_html,
    format_count,
    format_duration,
    format_estimate,
    format_interval,
    format_level,
    format_number,
    format_percent,
    format_range,
    format_size,
    format_sum,
    format_table,
    format_usd,
    html_table,
    shorten,
)
from famnb.stats import Interval


@pytest.mark.parametrize(
    ("seconds", "brief", "precise"),
    [
        (0, "less than 1 ms", "0 s"),
        (0.0004, "less than 1 ms", "0.4 ms"),
        (0.0042, "4 ms", "4.2 ms"),
        (0.008, "8 ms", "8 ms"),
        (0.0994, "99 ms", "99 ms"),
        (0.0996, "0.10 s", "0.10 s"),
        (0.42, "0.42 s", "0.42 s"),
        (0.996, "1.0 s", "1.00 s"),
        (2.34, "2.3 s", "2.34 s"),
        (9.996, "10.0 s", "10.0 s"),
        (59.97, "1 min 0 s", "60.0 s"),
        (72.4, "1 min 12 s", "72.4 s"),
        (150, "2 min 30 s", "2.5 min"),
        (4344, "1 h 12 min", "72.4 min"),
        (9000, "2 h 30 min", "2.5 h"),
        (-0.02, "−20 ms", "−20 ms"),
    ],
)
def test_a_duration_has_the_unit_in_which_it_is_read(seconds: float, brief: str, precise: str):
    assert (format_duration(seconds, brief=True), format_duration(seconds)) == (brief, precise)


def test_a_duration_beside_an_axis_in_milliseconds_is_in_milliseconds():
    texts = [format_duration(seconds, ms_below=1) for seconds in (0.0042, 0.0996, 0.4, 0.9996, 2)]
    assert texts == ["4.2 ms", "100 ms", "400 ms", "1.00 s", "2.00 s"]


@pytest.mark.parametrize(
    ("amount", "text"),
    [("0", "$0.00"), ("1234.5", "$1,234.50"), ("0.25", "$0.25"), ("0.0000162", "$0.0000162"), ("0.5", "$0.50")],
)
def test_amounts_read_as_money(amount: str, text: str):
    assert format_usd(Decimal(amount)) == format_usd(float(amount)) == text
    assert format_usd(-Decimal(amount)) == (f"−{text}" if float(amount) else text)


def test_a_number_has_three_significant_digits():
    texts = [format_number(value) for value in (0.12345, 12.345, 99.96, 1234.5, -0.5)]
    assert texts == ["0.123", "12.3", "100", "1,234", "−0.5"]


def test_an_amount_reads_alike_however_its_parts_were_added():
    """Half a digit is rounded up, not by what floats left in the 16th."""
    parts = [0.00002325, 0.00010675, 0.00003025, 0.00010625]
    assert {format_usd(sum(parts)), format_usd(sum(parts[::-1])), format_usd(0.00026649999999999997)} == {"$0.000267"}
    assert format_usd(0.0005185000000000001) == format_usd(Decimal("0.0005185")) == "$0.000519"


def test_counts_shares_and_levels():
    assert [format_count(1, "call"), format_count(2, "call"), format_count(1234)] == ["1 call", "2 calls", "1,234"]
    assert [format_percent(0.623), format_percent(0.0123, decimals=1)] == ["62%", "1.2%"]
    assert [format_level(0.95), format_level(0.995)] == ["95%", "99.5%"]


def test_a_size_is_in_kb_or_mb():
    texts = [format_size(size) for size in (0, 1, 3000, 5 * 1024 * 1024, 2**31)]
    assert texts == ["0 kB", "1 kB", "3 kB", "5.0 MB", "2,048.0 MB"]


@pytest.mark.parametrize(
    ("low", "high", "format_value", "expected"),
    [
        (0.35, 0.48, format_duration, "0.35–0.48 s"),
        (0.05, 0.48, format_duration, "50 ms–0.48 s"),
        (-0.02, 0.05, format_duration, "−20 to 50 ms"),
        (-3, -1, format_count, "−3 to −1"),
        (0.0012, 1.5, format_usd, "$0.0012–$1.50"),
        (0.19998, 0.20003, format_number, "0.19998–0.20003"),
        (119.8, 120.2, format_number, "119.8–120.2"),
        (2.338, 2.342, format_duration, "2.338–2.342 s"),
        (0.0012311, 0.0012329, format_usd, "$0.001231–$0.001233"),
        (0.3, 0.1 + 0.2, format_number, "all 0.3"),
    ],
)
def test_intervals_are_written_as_one_reads_them(low, high, format_value, expected):
    assert format_range(low, high, format_value) == expected


def test_what_is_not_known_of_an_interval_says_so():
    nothing = Interval(math.nan, math.nan, math.nan, 0, 0.95)
    bound = Interval(math.nan, math.nan, 7.0, 0, 0.95)
    alone = Interval(3.0, math.nan, math.nan, 1, 0.95)
    whole = Interval(3.0, 2.0, 4.0, 9, 0.95)
    texts = [format_interval(interval, format_count) for interval in (nothing, bound, alone, whole)]
    assert texts == ["not known", "not known, at most 7", "3", "3 (2–4)"]


def test_what_is_estimated_wears_its_mark():
    ends = [(2, 2, 2), (2, 1, 3), (2, 1, 3.1), (2, 0, 3), (math.nan, math.nan, math.nan)]
    assert [format_estimate(*triple, format_number) for triple in ends] == [
        "2", "≈ 2 (1–3)", "at most 3.1", "at most 3", "not known"
    ]  # fmt: skip
    interval = Interval(2.0, 1.0, 9.0, 9)
    texts = [format_interval(interval, format_number, factor=factor) for factor in (1, 1.1, 3, 3.1)]
    assert texts == ["2 (1–9)", "≈ 2 (1–9)", "≈ 2 (1–9)", "at most 9"]


def test_a_sum_with_unknown_parts_is_a_lower_bound():
    assert format_sum(0.12, 0.12, 0.12, calls=29, unpriced=28) == "≥ $0.12 (28 of 29 calls without a price)"
    assert format_sum(0.12, 0.1, 0.2, calls=9, unpriced=0, uncounted=1) == "≥ $0.10 (1 of 9 calls without token counts)"
    assert format_sum(math.nan, math.nan, math.nan, calls=1, unpriced=1) == "not known (1 of 1 call without a price)"
    assert format_sum(0.12, 0.1, 0.2, calls=9, unpriced=0) == "≈ $0.12 ($0.10–$0.20)"


def test_a_table_of_text_is_aligned():
    assert format_table(["name", "n"], [["a", "1"], ["longer", "1,000"]]) == (
        "name        n\na           1\nlonger  1,000"
    )


def test_a_cell_is_text_and_never_markup_or_a_formula():
    """Between two dollar signs a notebook would typeset a formula."""
    html = html_table(["<b>"], [["$5 or $6"]])
    assert "<b>" not in html
    assert "<span>$</span>5 or <span>$</span>6" in html
    assert escape_html("a & b") == "a &amp; b"


@pytest.mark.parametrize(("text", "short"), [("", ""), ("sixty", "sixty"), ("seventy", "seven…")])
def test_a_text_that_is_cut_short_ends_in_an_ellipsis(text: str, short: str):
    assert shorten(text, 6) == short
