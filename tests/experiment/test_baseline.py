"""Comparisons over time: the same prompts and variants before and after, from every kind of source alike."""

from __future__ import annotations

import pandas as pd
import pytest

import famnb
from famnb.errors import InvalidRequest
from famnb.experiment.baseline import compare_frames, read_baseline, save_baseline
from tests.support.experiment_frames import frame, spread


def test_each_variant_is_compared_with_itself_over_time():
    old = frame(40, e2e_s=(spread(40, 1, 0.1), spread(40, 2, 0.1, 1)))
    new = frame(40, e2e_s=(spread(40, 1.5, 0.1, 2), spread(40, 2, 0.1, 3)))
    found = compare_frames([old], [new], metrics=["e2e_s"])
    assert found.pairs[["first", "second", "clear"]].to_numpy().tolist() == [
        ["A, before", "A, after", True],
        ["B, before", "B, after", False],
    ]
    assert found.pairs["difference"].tolist() == pytest.approx([0.5, 0], abs=0.05)
    assert found.findings[0].startswith('Time to the end of the answer: "A, after" typically finishes')
    assert 'cannot tell whether "B, after" is faster than "B, before"' in found.findings[1]


def test_two_single_variants_are_paired_whatever_they_are_called():
    old, new = (frame(20, variants=(name,), e2e_s=(spread(20, 1, 0.1),)) for name in ("old-model", "new-model"))
    assert compare_frames([old], [new]).pairs[["first", "second"]].drop_duplicates().to_numpy().tolist() == [
        ["before", "after"]
    ]


def test_only_prompts_with_the_same_text_are_compared():
    old = frame(20, variants=("A",), e2e_s=(1.0,)).assign(prompt_hash=[f"h{number}" for number in range(20)])
    new = old.assign(prompt_hash=["other", *old["prompt_hash"][1:]])
    found = compare_frames([old.iloc[:15]], [new])
    assert found.pairs["n"].tolist()[0] == 14
    assert "1 prompt had another text before and are left out." not in found.notes
    assert "1 prompt had another text before and is left out." in found.notes
    assert "5 prompts are in only one of the two and are left out." in found.notes


def test_variants_of_only_one_of_the_two_are_named():
    old = frame(10, variants=("A", "B"), e2e_s=(1.0, 1.0))
    found = compare_frames([old], [frame(10, variants=("A", "C"), e2e_s=(1.0, 1.0))])
    assert found.table.index.tolist() == ["before", "after"]
    assert {"Only before, and not compared: B.", "Only after, and not compared: C."} <= set(found.notes)


def test_a_saved_baseline_gives_the_same_figures(tmp_path):
    """The file holds the frame with its types, missing values and the order of the variants."""
    old = frame(20, variants=("B", "A"), e2e_s=(spread(20, 1, 0.1), spread(20, 2, 0.1)), score_exact=(1.0, 0.0))
    old = old.astype({"error": "string", "status": "string", "prompt_id": "string"})
    old["variant"] = pd.Categorical(old["variant"], categories=["B", "A"])
    old.loc[3, ["e2e_s", "status", "error"]] = [pd.NA, "failed", "ServerError"]
    path = save_baseline(old, tmp_path / "baseline.json")
    pd.testing.assert_frame_equal(read_baseline(path), old, check_dtype=False)
    pd.testing.assert_frame_equal(
        compare_frames([read_baseline(path)], [old]).pairs, compare_frames([old], [old]).pairs
    )


def test_what_has_nothing_in_common_or_is_no_baseline_is_refused(tmp_path):
    rows = frame(6, e2e_s=(1.0, 1.0))
    for old, message in (
        (rows.assign(prompt_id="other"), "they have no prompt in common"),
        (frame(6, variants=("C", "D"), e2e_s=(1.0, 1.0)), "they have no variant in common: C, D before, A, B after"),
    ):
        with pytest.raises(InvalidRequest, match=message):
            compare_frames([old], [rows])
    (tmp_path / "other.json").write_text('{"a": 1}')
    with pytest.raises(InvalidRequest, match="expected a file that Experiment"):
        read_baseline(tmp_path / "other.json")


def test_an_experiment_is_compared_with_an_earlier_one_of_its_ledger(server, tmp_path):
    """By name, as an experiment and as a saved baseline it is the same; the earlier answers are scored, too."""
    with famnb.Client(base_url=server.url, api_key=server.key, ledger=tmp_path / "ledger.sqlite") as client:

        def make(name: str, **fields) -> famnb.Experiment:
            prompts = [{"id": f"q{number}", "prompt": f"What is {number} + 1?"} for number in range(8)]
            scorers = [famnb.scorers.contains("simulated")]
            return famnb.Experiment(
                prompts, None, 2, scorers, name=name, client=client, model="fam-2-5-mini", endpoint="messages", **fields
            )

        earlier, later = make("earlier", max_tokens=20), make("later", max_tokens=60)
        for experiment in (earlier, later):
            experiment.run(progress=False)
        by_name = later.against("earlier")
        assert by_name.pairs.query("metric == 'output_tokens'")["difference"].tolist()[0] > 0
        assert by_name.pairs["metric"].tolist()[0] == "score_contains"
        assert any(note.startswith("Before: earlier, of ") for note in by_name.notes)
        baseline = earlier.save_baseline(tmp_path / "baseline.json")
        for source in (earlier, earlier.frame(), baseline):
            pd.testing.assert_frame_equal(later.against(source).pairs, by_name.pairs)
        for source, message in (
            ("never", "the ledger has no call of an experiment 'never'"),
            (earlier.frame().drop(columns="variant"), "expected the frame of an experiment; it has no column variant"),
            (5, "against: expected the name of an experiment, .*; got 5"),
        ):
            with pytest.raises(InvalidRequest, match=message):
                later.against(source)
        assert later.check(max={"output_tokens": 100}, min={"success": 0.5})
        assert later.check(max={"output_tokens": 1}).outcome == "fail"
