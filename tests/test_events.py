"""Usage: nothing summed, nothing made up, every count with its source."""

import re

from hypothesis import given
from hypothesis import strategies as st

from famnb.events import COUNTS, Usage

maybe = st.none() | st.integers(0, 1000)
usages = st.builds(Usage, maybe, maybe, maybe, maybe, maybe, maybe)


def test_a_count_has_a_source():
    usage = Usage(0, 5, 3, derived=("output_tokens",), estimated=("reasoning_tokens",))
    assert [usage.source(count) for count in COUNTS] == [*["reported", "derived", "estimated"], *["absent"] * 3]


def test_the_last_value_wins_with_its_source():
    first = Usage(10, 4, derived=("input_tokens",), estimated=("output_tokens",))
    assert first.merge(Usage(output_tokens=6)) == Usage(10, 6, derived=("input_tokens",))
    assert first.merge(Usage(11, derived=())) == Usage(11, 4, estimated=("output_tokens",))


@given(usages, usages)
def test_a_repeated_report_counts_once(first: Usage, second: Usage):
    assert first.merge(second).merge(second) == first.merge(second)
    assert first.merge(Usage()) == first
    assert Usage().merge(first) == first


def test_a_total_is_derived_where_the_wire_gives_none():
    assert Usage(3, 2).with_total() == Usage(3, 2, total_tokens=5, derived=("total_tokens",))
    assert Usage(3, 2, total_tokens=9).with_total() == Usage(3, 2, total_tokens=9)
    assert Usage(3).with_total() == Usage(3)


def test_usage_reads_as_one_line_and_shows_as_a_table_with_sources():
    usage = Usage(input_tokens=12, output_tokens=3456, estimated=("output_tokens",))
    assert repr(usage) == "<Usage input_tokens=12, output_tokens≈3456>"
    assert repr(Usage()) == "<Usage unknown>"
    cells = re.findall(r"<td[^>]*>([^<]*)", usage._repr_html_())
    assert cells[:6] == ["input_tokens", "12", "reported", "output_tokens", "3,456", "estimated"]
    assert cells[6:9] == ["reasoning_tokens", "–", "absent"]
