"""The plan: its columns, its order, and keys that are the recorded calls' keys."""

import warnings

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import famnb
from famnb.errors import InvalidRequest
from famnb.experiment.plan import cell_key, plan_cells
from famnb.experiment.prompts import parse_prompts
from famnb.experiment.variants import parse_variants

GRID = famnb.grid(model=["fam-2-5-pro", "fam-2-5-mini"], endpoint=["messages", "web", "responses"])


def cells(*, repeats=3, warmup=0, seed=0, prompts=("a", "b", "c", "d")):
    return plan_cells(parse_prompts(prompts), GRID, repeats=repeats, warmup=warmup, seed=seed, shared={})


def test_the_tags_of_prompts_are_columns(client):
    """Each value named in `keep=`; one whose name is that of another column says whose it is."""
    rows = [
        {"id": "a", "prompt": "2 + 2?", "expected": "4", "topic": "sums", "level": 1, "model": "car"},
        {"id": "b", "prompt": "A fish?", "expected": "cod", "topic": "food", "temperature": "cold"},
    ]
    kept = ["topic", "level", "model", "temperature"]
    exp = famnb.Experiment(rows, famnb.grid(temperature=[0.0, 0.5]), name="p", client=client, keep=kept)
    plan = exp.plan().drop_duplicates("prompt_id").sort_values("prompt_id")
    assert list(plan["topic"]) == ["sums", "food"]
    assert (plan["level"].iloc[0], plan["level"].isna().iloc[1], str(plan["level"].dtype)) == (1, True, "Int64")
    assert (plan["prompt_model"].iloc[0], plan["prompt_temperature"].iloc[1]) == ("car", "cold")
    assert set(exp.plan()["temperature"]) == {0.0, 0.5}
    assert "expected" not in plan


def test_a_plan_is_a_row_a_cell(client):
    grid, repeats = famnb.grid(temperature=[0.0, 0.5]), np.int64(2)
    exp = famnb.Experiment(["a", "b"], grid, repeats, name="p", client=client, warmup=np.int32(1))
    assert repr(exp) == "<Experiment p: 2 prompts × 2 variants × 2 repeats>"
    plan = exp.plan()
    columns = "order cell prompt_id prompt variant endpoint model temperature repeat warmup"
    assert list(plan.columns) == columns.split()
    assert len(plan) == 2 * 2 * 2 + 2 == plan["cell"].nunique()
    assert plan["order"].tolist() == list(range(10))
    assert plan["warmup"].tolist() == [True] * 2 + [False] * 8
    assert set(plan["temperature"]) == {0.0, 0.5}


@given(seed=st.integers(-5, 5), repeats=st.integers(1, 3), warmup=st.integers(0, 2))
def test_every_block_of_a_prompt_and_a_repeat_holds_every_variant(seed: int, repeats: int, warmup: int):
    """So that drift hits all alike; the repeats follow one another, and warm-ups come first."""
    plan = cells(seed=seed, repeats=repeats, warmup=warmup)
    warm, measured = plan[: warmup * len(GRID)], plan[warmup * len(GRID) :]
    assert all(cell.warmup for cell in warm)
    assert not any(cell.warmup for cell in measured)
    blocks = [measured[at : at + len(GRID)] for at in range(0, len(measured), len(GRID))]
    assert all({cell.variant.label for cell in block} == {variant.label for variant in GRID} for block in blocks)
    assert all(len({(cell.prompt.id, cell.repeat) for cell in block}) == 1 for block in blocks)
    assert [block[0].repeat for block in blocks] == [repeat for repeat in range(repeats) for _ in "abcd"]
    assert len({cell.key for cell in plan}) == len(plan) == (repeats * 4 + warmup) * len(GRID)


def test_the_order_follows_from_the_seed_alone():
    first, again, other = cells(seed=1), cells(seed=1), cells(seed=2)
    assert [cell.key for cell in first] == [cell.key for cell in again] != [cell.key for cell in other]
    assert {cell.key for cell in first} == {cell.key for cell in other}
    labels = [cell.variant.label for cell in first]
    assert len({tuple(labels[at : at + len(GRID)]) for at in range(0, len(labels), len(GRID))}) > 1


def test_a_cell_stays_the_same_when_others_come_and_go():
    """Its key is of its content: more prompts, more repeats or other labels do not change it."""
    few = {cell.key for cell in cells(repeats=1, prompts=["a"])}
    renamed = parse_variants({f"v{at}": variant.fields for at, variant in enumerate(GRID)}, shared={})
    assert few < {cell.key for cell in cells()}
    assert few == {
        cell.key for cell in plan_cells(parse_prompts(["a"]), renamed, repeats=1, warmup=0, seed=9, shared={})
    }


def test_a_plans_key_equals_the_recorded_calls_key(client):
    exp = famnb.Experiment(
        [{"id": "ü", "word": "née \U0001f600"}],
        GRID,
        repeats=2,
        name="law",
        client=client,
        warmup=1,
        template="Say {word}",
        system="Short.",
        max_tokens=8,
    )
    exp.run()
    rows = client.ledger.select("experiment = 'law'")
    recorded = []
    for row in rows:
        call, labels = client.ledger.call(row["id"]), msgspec.json.decode(row["labels"])
        key = cell_key(call.endpoint.name, call.body, repeat=int(labels["repeat"]), warmup=labels["warmup"] == "true")
        assert key == row["cell"] == labels["cell"]
        assert labels["prompt_id"] == "ü"
        recorded.append(key)
    assert sorted(recorded) == sorted(exp.plan()["cell"])


@pytest.mark.parametrize(
    ("prompts", "variants", "message"),
    [
        (["same", "same"], None, "prompts 'p1' and 'p2' are the same; ask one of them more often with repeats="),
        (["a"], {"x": {}, "y": {"model": "fam-2-5-pro"}}, "variants 'x' and 'y' send the same request"),
    ],
)
def test_two_cells_that_are_one_request_are_refused(client, prompts, variants, message):
    with pytest.raises(InvalidRequest, match=message):
        famnb.Experiment(prompts, variants, name="twice", client=client).plan()


def test_what_an_endpoint_carries_only_nearly_is_said_once(client):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        famnb.Experiment(
            ["a", "b"], famnb.grid(endpoint=["web", "messages"], thinking=[64, 128]), name="w", client=client
        )
    assert ["nearest reasoning effort" in str(warning.message) for warning in caught] == [True, True]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"name": " "}, "name: expected a name"),
        ({"repeats": 0}, "repeats: expected an integer of at least 1, got 0"),
        ({"warmup": -1}, "warmup: expected an integer of at least 0"),
        ({"seed": "x"}, "seed: expected an integer, got 'x'"),
        ({"repeats": True}, "repeats: expected an integer of at least 1, got True"),
        ({"temprature": 1}, "temprature: no endpoint has such a field"),
    ],
)
def test_a_senseless_setting_is_refused_at_once(client, wrong, message):
    with pytest.raises(InvalidRequest, match=message):
        famnb.Experiment("Hi", **{"name": "n", "client": client, **wrong})
