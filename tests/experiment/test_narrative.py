"""A summary in words: what it claims, what it refuses to claim, and what it names."""

from __future__ import annotations

from famnb.experiment.summary import summary
from tests.support.experiment_frames import frame, spread


def test_a_clear_difference_is_said_with_its_interval_and_n():
    """B is sooner by what was put in, and dearer by a factor."""
    cost = spread(60, 0.001, 0.0001, 3)
    rows = frame(e2e_s=(spread(60, 2, 0.3), spread(60, 2, 0.3) - spread(60, 0.41, 0.1, 1)), cost_usd=(cost, cost * 2.1))
    found = summary(rows)
    assert found.lines == (
        "B answers 0.41 s sooner than A (95% interval 0.38–0.43 s, n = 60 pairs); costs 2.1 times as much (all 2.1).",
    )
    row = found.pairs.set_index("metric").loc["e2e_s"]
    assert (row["first"], row["second"], row["n"], bool(row["clear"])) == ("A", "B", 60, True)
    assert row["low"] < -0.41 < row["high"]


def test_too_few_pairs_are_refused_with_how_many_would_do():
    """Four pairs show nothing, however far apart they are."""
    found = summary(frame(4, e2e_s=(spread(4, 2, 0.3), spread(4, 1, 0.3, 1))))
    (line,) = found.lines
    assert line.startswith("B and A: no difference can be claimed: n = 4 pairs; about ")
    assert line.endswith(" would be needed to see 0.20 s in the time to the end of the answer.")
    assert not found.pairs["clear"].any()


def test_no_clear_difference_is_said_as_such():
    """With the interval, and with how many pairs would show a tenth."""
    (line,) = summary(frame(20, e2e_s=(spread(20, 2, 0.5), spread(20, 2, 0.5, 1)))).lines
    assert line.startswith("B and A: no clear difference in time to the end of the answer (−")
    assert "pairs would show 0.20 s); n = 20 pairs." in line


def test_what_is_clear_alone_is_not_claimed_as_one_of_many():
    """Four variants of one kind: by itself one of six pairs looks clear; Holm's adjustment claims none of them."""
    found = summary(frame(20, variants="ABCD", e2e_s=[spread(20, 2, 0.5, seed) for seed in range(4, 8)]))
    alone = (found.pairs["low"] > 0) | (found.pairs["high"] < 0)
    assert alone.sum() == 1
    assert not found.pairs["clear"].any()
    assert ["not enough for one of 6 comparisons" in line for line in found.lines] == list(alone)


def test_what_is_the_same_in_every_pair_is_said_as_such():
    """As costs are that follow from caps: no interval around it, and still only so many pairs."""
    costs, grades = ([0.2] * 6, [0.1] * 6), (spread(6, 2, 0.5), spread(6, 2, 0.5, 1))
    (line,) = summary(frame(6, e2e_s=(1, 1), cost_usd=costs, score_grade=grades)).lines
    assert "time to the end of the answer (the same in every pair); cost (−$0.10 in every pair, not enough for" in line


def test_many_variants_are_compared_with_the_first_in_words_and_all_in_the_table():
    """Of six, five lines and a sentence that says so."""
    found = summary(frame(8, variants="ABCDEF", e2e_s=[spread(8, 2, 0.5, seed) for seed in range(6)]))
    assert len(found.pairs) == 15
    assert len(found.lines) == 6
    assert "compared with A here" in found.lines[-1]


def test_failed_calls_are_counted_named_and_left_out():
    """A prompt that one side failed is no pair."""
    rows = frame(30, e2e_s=(spread(30, 2, 0.2), spread(30, 1, 0.2, 1)))
    failed = (rows["variant"] == "B") & rows["prompt_id"].isin(["p0", "p1"])
    rows.loc[failed, ["status", "error"]] = ["failed", "RateLimitError"]
    found = summary(rows)
    assert found.table.loc["B", ["planned", "completed", "failed", "left"]].tolist() == [30, 28, 2, 0]
    assert found.lines[0] == "2 of 30 calls of B failed (RateLimitError 2) and are in none of its medians and means."
    assert found.pairs["n"].tolist() == [28]


def test_simulated_calls_are_marked():
    """The first line says so."""
    lines = summary(frame(10, e2e_s=(spread(10, 2, 0.2), spread(10, 2, 0.2)), simulated=(True, True))).lines
    assert lines[0].startswith("Simulated: all calls were answered by a simulated engine")
