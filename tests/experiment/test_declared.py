"""What is declared before the calls, looks that the ledger counts, and further runs of the same plan."""

from __future__ import annotations

import pytest

import famnb
from famnb.cli.run_file import make_experiment, read_run_file
from tests.experiment.experiments import small_experiment


def test_a_primary_metric_that_is_named_afterwards_is_exploratory(client):
    exp = small_experiment(client, prompts=6, repeats=1, primary="ttft_s")
    exp.run(progress=False)
    assert (exp.summary().primary, exp.summary().exploratory) == ("ttft_s", False)
    assert not exp.summary(primary="ttft_s").exploratory
    chosen = exp.summary(primary="output_tokens")
    assert chosen.exploratory
    assert chosen.headline.startswith("Exploratory: ")
    assert any(note.startswith("Exploratory: output tokens was chosen after the calls") for note in chosen.notes)


def test_looks_at_growing_data_are_counted_once_each_and_judged_more_strictly(client):
    def look(prompts: int, **options) -> famnb.stats.Look:
        exp = small_experiment(client, prompts=prompts, repeats=1, **options)
        exp.run(progress=False)
        exp.check(max={"e2e_s": 60})
        return exp.summary().look

    assert look(6) == look(6) == famnb.stats.Look()
    grown = look(8)
    assert (grown.number, grown.method.partition(",")[0]) == (2, "confidence sequence")
    assert grown.nominal > 0.99
    declared = [look(prompts, name="declared", looks=2) for prompts in (6, 8)]
    assert [found.number for found in declared] == [1, 2]
    assert all(found.method.startswith("group-sequential") for found in declared)
    assert declared[0].nominal > declared[1].nominal > 0.95


def test_a_look_before_the_plan_is_done_spends_little(client):
    exp = small_experiment(client, prompts=8, repeats=1)
    whole = exp.cells
    exp.cells = whole[:8]
    exp.run(progress=False)
    exp.cells = whole
    early = exp.summary()
    assert early.look.nominal > 0.995
    assert any(note.startswith("Look 1 at growing data: clear is p < 0.003") for note in early.notes)
    exp.run(progress=False)
    assert exp.summary().look.nominal == pytest.approx(0.95, abs=0.002)


@pytest.mark.full
def test_runs_of_a_plan_are_the_unit_of_comparisons_over_time(client, tmp_path):
    """Each further run is recorded under a name of its own; `frame()` stays that of the first."""
    before, after = (small_experiment(client, prompts=6, repeats=1, name=name) for name in ("before", "after"))
    for exp in (before, after):
        exp.run(progress=False)
    with_one = after.against("before")
    assert with_one.pairs[["first_runs", "second_runs"]].drop_duplicates().to_numpy().tolist() == [[1, 1]]
    assert any(
        note.startswith("With one run a side, the intervals leave out how runs differ") for note in with_one.notes
    )
    for _ in range(2):
        before.repeat_run(progress=False)
    assert [run.name for run in before.runs()] == ["before", "before (run 2)", "before (run 3)"]
    assert len(before.frame()) == len(before.cells)
    baseline = before.save_baseline(tmp_path / "before.json")
    with_three = after.against("before")
    assert with_three.pairs["first_runs"].unique().tolist() == [3]
    columns = ["metric", "difference", "low", "high", "clear"]
    assert after.against(baseline).pairs[columns].equals(with_three.pairs[columns])
    several = after.against([before.frame(), baseline])
    assert several.pairs["first_runs"].unique().tolist() == [4]
    check = after.check(against="before", margin={"success": 0.9})
    assert check.table[["metric", "bound", "outcome"]].drop_duplicates().to_numpy().tolist() == [
        ["success", "margin", "pass"]
    ]


def test_variants_are_checked_against_the_first_by_the_margin_that_was_declared(client):
    exp = small_experiment(client, prompts=6, repeats=1, margin={"success": 0.9})
    exp.run(progress=False)
    table = exp.check().table
    assert table[["metric", "bound", "limit", "outcome"]].to_numpy().tolist() == [["success", "margin", 0.9, "pass"]]


def test_a_file_carries_what_was_declared(client, tmp_path):
    declared = {"primary": "e2e_s", "margin": {"e2e_s": "10%"}, "looks": 3}
    exp = famnb.Experiment(["Hi."], name="x", client=client, model="fam-mini", **declared)
    again = make_experiment(read_run_file(exp.to_toml(tmp_path / "exp.toml")), client)
    assert {name: getattr(again, name) for name in declared} == declared


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ({"margin": "much"}, "margin: e2e_s: expected a number of at least 0"),
        ({"margin": {"output_tokens": 3}}, "neither more nor less of output_tokens"),
        ({"looks": 0}, "looks: "),
    ],
)
def test_what_cannot_be_declared_is_refused_before_any_call(client, declared, message):
    with pytest.raises(famnb.InvalidRequest, match=message):
        famnb.Experiment(["Hi."], name="x", client=client, **declared)
