"""Variants: what a grid makes, what it refuses, and in which words."""

import numpy as np
import pytest

import famnb
from famnb.errors import InvalidRequest
from famnb.experiment.variants import build_request, parse_variants

MODELS = ["fam-2-5-pro", "fam-mini"]


def test_a_grid_is_every_combination_labelled_by_what_varies():
    found = famnb.grid(model=["fam-2-5-pro", "fam-2-5-mini"], endpoint="messages", temperature=[0, 1])
    assert [variant.label for variant in found] == [
        "fam-2-5-pro, temperature=0",
        "fam-2-5-pro, temperature=1",
        "fam-2-5-mini, temperature=0",
        "fam-2-5-mini, temperature=1",
    ]
    assert found[3].fields == {"model": "fam-2-5-mini", "endpoint": "messages", "temperature": 1}
    assert repr(famnb.grid(model="fam-mini")[0]) == "<Variant 'fam-mini': model='fam-mini'>"


def test_a_range_of_numpy_is_varied_like_a_list():
    variants = parse_variants(famnb.grid(max_tokens=np.arange(16, 48, 16), model=np.array(["fam-2-5-pro"])), shared={})
    assert [variant.fields for variant in variants] == [{"max_tokens": n, "model": "fam-2-5-pro"} for n in (16, 32)]


def test_long_values_that_look_alike_are_numbered():
    first, second = famnb.grid(system=["You are a helpful assistant who likes cats.", "x" * 300])
    assert len(first.label) < 60 > len(second.label)
    labels = [variant.label for variant in famnb.grid(system=["x" * 300 + "a", "x" * 300 + "b"])]
    assert labels[0] != labels[1]


def test_combinations_can_be_dropped_by_a_rule():
    chosen = famnb.grid(model=MODELS, temperature=[0, 1], where=lambda v: v["model"] == "fam-mini" or v["temperature"])
    assert len(chosen) == 3


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"temprature": [0]}, "temprature: no endpoint has such a field; did you mean 'temperature'"),
        ({"max_output_token": [9]}, "did you mean 'max_output_tokens'"),
        ({"messages": ["hi"]}, "messages: the prompts fill it"),
        ({"model": MODELS, "endpoint": "web"}, r"endpoint 'web' does not serve model 'fam-mini' \(only chat\)"),
        ({"model": "fam-3", "endpoint": "web"}, "no endpoint does; there are fam-mini, fam-2-5-pro, fam-2-5-mini"),
        ({"endpoint": ["web", "chat"], "tool_choice": "auto"}, r"tool_choice: endpoint 'chat' .*\(only web\)"),
        ({"endpoint": "mesages"}, "no endpoint 'mesages'; expected one of chat, responses, web, messages"),
        ({"temperature": []}, "temperature has no values"),
        ({"model": "fam-mini", "where": lambda _: False}, "no combination is left"),
    ],
)
def test_what_no_endpoint_would_take_is_refused(fields, message):
    with pytest.raises(InvalidRequest, match=message):
        parse_variants(famnb.grid(**fields), shared={})


def test_a_value_out_of_range_is_refused_in_the_words_of_the_request():
    with pytest.raises(InvalidRequest, match=r"variant 'hot': .*temperature: input should be less than or equal to 2"):
        parse_variants({"cold": {"temperature": 0}, "hot": {"temperature": 3}}, shared={})


def test_the_fields_of_all_requests_count_when_variants_are_checked():
    grid = famnb.grid(store=[True, False])
    assert len(parse_variants(grid, shared={"endpoint": "responses"})) == 2
    with pytest.raises(InvalidRequest, match=r"store: endpoint 'messages' does not take it \(only responses\)"):
        parse_variants(grid, shared={})


@pytest.mark.parametrize(
    ("value", "position"),
    [
        ("fam-2-5-pro", ""),
        (["fam-2-5-pro"], r"\[0\]"),
        ({"A": "fam-2-5-pro"}, r"\['A'\]"),
        ({"model": "fam-2-5-pro"}, r"\['model'\]"),
        (5, ""),
    ],
)
def test_what_is_no_variant_is_refused_by_its_place(value, position):
    with pytest.raises(InvalidRequest, match=rf"variants{position}: expected what famnb.grid.*\[{{'model'.*; got"):
        parse_variants(value, shared={})


def test_a_variant_in_a_list_may_have_a_label_of_its_own():
    variants = parse_variants([{"label": "cold", "temperature": 0}, {"temperature": 1}], shared={})
    assert [(variant.label, dict(variant.fields)) for variant in variants] == [
        ("cold", {"temperature": 0}),
        ("temperature=1", {"temperature": 1}),
    ]


def test_a_label_may_not_occur_twice():
    with pytest.raises(InvalidRequest, match="label 'a' occurs twice"):
        parse_variants(
            [*parse_variants({"a": {}}, shared={}), *parse_variants({"a": {"top_p": 0.5}}, shared={})], shared={}
        )


def test_neutral_names_mean_the_same_on_every_endpoint(client):
    grid = famnb.grid(endpoint=["chat", "responses", "web", "messages"], max_tokens=32, system="Be brief.")
    exp = famnb.Experiment("Hi", grid, name="neutral", client=client)
    caps = {cell.request.endpoint: cell.request.body()[cell.request.cap] for cell in exp.cells}
    assert caps == {"chat": 32, "responses": 32, "web": 32, "messages": 32}
    bodies = [cell.request.body() for cell in exp.cells]
    assert all("Be brief." in str(body) for body in bodies)


def test_an_experiments_streams_ask_for_their_usage_unless_told_otherwise():
    assert build_request("Hi", {"endpoint": "web"}).asks_for_usage
    for fields in ({"stream": False}, {"stream_options": None}, {"stream_options": {"include_usage": False}}):
        assert not build_request("Hi", {"endpoint": "web", **fields}).asks_for_usage


def test_a_grid_of_a_vendors_model_is_checked_by_the_experiment(client: famnb.Client):
    grid = famnb.grid(model=["gpt-5-mini", "gpt-5"], endpoint="chat", reasoning_effort=["low", "high"])
    assert len(grid) == 4
    with famnb.Client(profile="openai", api_key="k" * 20, ledger=client.ledger) as vendor:
        assert famnb.Experiment(["hi"], grid, name="x", client=vendor).variants[0].fields["model"] == "gpt-5-mini"
    with pytest.raises(InvalidRequest, match="reasoning_effort: no endpoint has such a field"):
        famnb.Experiment(["hi"], grid, name="x", client=client)
