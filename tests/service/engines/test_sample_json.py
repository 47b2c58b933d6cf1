"""Values for JSON Schemas, checked by a validator."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from famnb.service.engines.sample_json import Unsatisfiable, sample_value

TREE = {
    "$defs": {
        "node": {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/node"}}}}
    },
    "$ref": "#/$defs/node",
}
LINKED = {
    "type": "object",
    "properties": {"value": {"type": "integer"}, "next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}},
    "required": ["value", "next"],
}


@pytest.mark.parametrize(
    "schema",
    [
        True,
        {},
        {"type": "object"},
        {"type": "string", "minLength": 3, "maxLength": 5},
        {"type": "string", "maxLength": 0},
        {"type": "string", "minLength": 100},
        *({"type": "string", "format": name} for name in ("date", "date-time", "email", "uuid", "uri", "ipv4", "time")),
        {"type": "integer", "minimum": 10},
        {"type": "integer", "maximum": -3},
        {"type": "integer", "exclusiveMinimum": 5, "exclusiveMaximum": 7},
        {"type": "integer", "minimum": 12, "multipleOf": 7},
        {"type": "integer", "minimum": -9, "maximum": -8},
        {"type": "number", "minimum": 0.25, "maximum": 0.5},
        {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
        {"type": "number", "multipleOf": 0.25, "minimum": 0.3},
        {"type": ["string", "null"]},
        {"type": "null"},
        {"type": "boolean"},
        {"enum": ["red", "green", 5, None]},
        {"const": {"a": [1, 2]}},
        {"type": "array", "items": {"type": "integer"}, "minItems": 3, "maxItems": 3},
        {"type": "array", "items": {"type": "string"}, "uniqueItems": True, "minItems": 4},
        {"type": "array", "items": {"enum": ["a", "b", "c"]}, "uniqueItems": True, "minItems": 3},
        {"type": "array", "items": {"type": "integer", "minimum": 5}, "uniqueItems": True},
        {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "items": False},
        {"type": "array", "maxItems": 0},
        {"properties": {"a": {"type": "integer"}}, "required": ["a", "b"]},
        {"type": "object", "minProperties": 3, "additionalProperties": {"type": "integer"}},
        {"type": "object", "properties": {"a": {}, "b": {}}, "maxProperties": 1, "required": ["b"]},
        {"type": "object", "properties": {"a": False, "b": {"type": "string"}}, "additionalProperties": False},
        {"anyOf": [{"type": "string", "pattern": "x"}, {"type": "integer", "minimum": 3}]},
        {"oneOf": [{"type": "integer"}, {"type": "string"}]},
        {"allOf": [{"type": "object", "required": ["a"]}, {"properties": {"a": {"const": 1}}}]},
        {"allOf": [{"minimum": 3}, {"maximum": 3}, {"type": ["integer", "string"]}], "type": "number"},
        {
            "type": "object",
            "properties": {"a": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/x"}]}},
            "$defs": {"x": {}},
        },
        {"$defs": {"a/b": {"type": "integer"}}, "$ref": "#/$defs/a~1b"},
        TREE,
        LINKED,
    ],
    ids=repr,
)
def test_an_instance_satisfies_its_schema(schema: Any):
    value = sample_value(schema)
    Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER).validate(value)
    assert sample_value(schema) == value


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (False, "`false`"),
        ({"type": "string", "pattern": "^x"}, 'the answer: "sample text" does not match "^x"'),
        ({"type": "integer", "minimum": 5, "maximum": 4}, "less than the minimum of 5"),
        ({"type": "string", "minLength": 5, "maxLength": 4}, "shorter than 5 characters"),
        ({"type": "array", "minItems": 3, "maxItems": 2}, "less than 3 items"),
        ({"enum": []}, "cannot follow"),
        ({"anyOf": [False, False]}, "`false`"),
        ({"$ref": "https://example.com/schema"}, "Resource 'https://example.com/schema' is not present"),
        ({"$ref": "#/$defs/missing"}, "not a valid JSON Schema"),
        ({"$ref": "#"}, "bound its recursion"),
        ({"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}, "bound its recursion"),
        # Each of its levels is twice as wide as the one above.
        pytest.param(
            {"required": ["a", "b"], "additionalProperties": {"$ref": "#"}},
            "is a required property",
            marks=pytest.mark.full,
        ),
        ({"type": "banana"}, "not a valid JSON Schema (type"),
        ({"type": "integer", "multipleOf": 0}, "not a valid JSON Schema (multipleOf"),
        ({"properties": {"a": {"const": 1, "not": {}}}, "required": ["a"]}, "the answer.a: "),
    ],
    ids=repr,
)
def test_a_schema_that_leaves_no_way_is_refused(schema: Any, reason: str):
    with pytest.raises(Unsatisfiable) as refused:
        sample_value(schema)
    assert reason in str(refused.value)


def test_words_fill_the_first_free_texts():
    schema = {"properties": {"city": {"type": "string"}, "country": {"type": "string"}}}
    assert sample_value(schema, words=("Paris",)) == {"city": "Paris", "country": "sample country"}


KEYWORDS = """type properties required items prefixItems enum anyOf allOf $ref format minimum multipleOf minItems
maxItems uniqueItems minLength minProperties additionalProperties"""
WORDS = st.sampled_from(["#", "object", "array", "integer", "string", "é"])
NONSENSE = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYWORDS.split()), inner, max_size=4),
    max_leaves=12,
)


@given(NONSENSE)
def test_nonsense_is_refused_or_answered_never_a_crash(schema: Any):
    try:
        value = sample_value(schema)
    except Unsatisfiable:
        value = None
    json.dumps(value)
