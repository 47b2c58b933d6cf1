"""Prompts from every source, their slots filled, and what is said of a row that cannot be."""

import csv
from pathlib import Path

import pandas as pd
import pytest

from famnb.errors import InvalidRequest
from famnb.experiment.prompts import Prompt, parse_prompts

ROWS = [{"id": "f", "city": "Lyon", "n": 2}, {"id": "n", "city": "Oslo", "n": 3}]
TEXTS = {"f": "Name 2 dishes of Lyon.", "n": "Name 3 dishes of Oslo."}
TEMPLATE = "Name {n} dishes of {city}."


def test_a_list_of_texts_is_taken_as_it_is():
    found = parse_prompts(["Why?", 'Write {"a": 1} and {this}.'])
    assert [(prompt.id, prompt.text) for prompt in found] == [("p1", "Why?"), ("p2", 'Write {"a": 1} and {this}.')]


WRITERS = {
    ".csv": lambda table, file: table.to_csv(file, index=False),
    ".jsonl": lambda table, file: table.to_json(file, orient="records", lines=True),
    ".json": lambda table, file: table.to_json(file, orient="records"),
    ".parquet": lambda table, file: table.to_parquet(file),
    ".xlsx": lambda table, file: table.to_excel(file, index=False),
}


@pytest.mark.parametrize("suffix", WRITERS)
@pytest.mark.parametrize("kind", [str, Path])
def test_rows_of_every_kind_of_file_fill_the_same_template(suffix: str, kind: type, tmp_path: Path):
    file = tmp_path / f"rows{suffix}"
    WRITERS[suffix](pd.DataFrame(ROWS), file)
    prompts = parse_prompts(kind(file), template=TEMPLATE)
    assert {prompt.id: prompt.text for prompt in prompts} == TEXTS
    assert prompts[0].slots["city"] == "Lyon"


@pytest.mark.parametrize("source", [ROWS, pd.DataFrame(ROWS), iter(ROWS)], ids=["list", "frame", "dataset"])
def test_rows_fill_a_template(source):
    assert {prompt.id: prompt.text for prompt in parse_prompts(source, template=TEMPLATE)} == TEXTS


@pytest.mark.parametrize("suffix", [".parquet", ".xlsx"])
def test_integers_of_a_column_with_gaps_stay_integers(suffix: str, tmp_path: Path):
    file = tmp_path / f"rows{suffix}"
    WRITERS[suffix](pd.DataFrame({"prompt": ["2 + 2?", "Why?"], "expected": pd.array([4, None], "Int64")}), file)
    assert [dict(prompt.slots) for prompt in parse_prompts(file)] == [{"expected": 4}, {}]


def test_a_row_may_bring_its_own_text_with_slots():
    row = {"prompt": 'Is {word} in {"a": 1} or {}?', "word": "{word}"}
    assert parse_prompts([row])[0].text == 'Is {word} in {"a": 1} or {}?'


def test_what_scorers_need_is_kept_and_not_asked():
    row = {"prompt": "2 + 2?", "expected": "4", "level": 1}
    (found,) = parse_prompts([row], keep="level")
    assert found.text == "2 + 2?"
    assert found.slots == {"expected": "4", "level": 1}


@pytest.mark.parametrize(
    ("source", "template", "message"),
    [
        (ROWS, "Dishes of {town}, {n} in {city}", r"prompts, row 1: no value for the slot \{town\}; it has city, n"),
        (ROWS, "Dishes of {city}", r"prompts, row 1: the value 'n' has no slot \{n\}.*keep=\['n'\]"),
        (pd.DataFrame({"city": ["Lyon", None]}, index=[7, 9]), "In {city}?", r"row 9: no value for the slot \{city\}"),
        ([{"city": "Lyon"}], None, "row 1: has no `prompt`, and there is no template="),
        (["a", 5], None, "row 2: expected a text or a mapping"),
        ([{"id": "x", "prompt": "a"}, {"id": "x", "prompt": "b"}], None, "row 2: the id 'x' is prompts, row 1's"),
        (["a", "  "], None, "row 2: the prompt is empty"),
        ([Prompt("x", " ")], None, "row 1: the prompt is empty"),
        (["a", "b\ud800"], None, r"row 2: character 2 of the prompt, U\+D800, is half of a pair"),
        ([], None, "there are none"),
        ({"prompt": "a"}, None, "put it in a list"),
        (Path("prompts.txt"), None, r"a file named .csv, .jsonl, .json.*got prompts.txt"),
        (__file__, None, "got test_prompts.py.*put it in a list"),
        (None, None, r"expected a list of texts or rows, a frame, or the path of a file \(.csv, .*; got None"),
        (b"a", None, "expected a list of texts or rows"),
        (["a"], 5, "template: expected a text with slots such as {question}, got 5"),
        (pd.DataFrame([["a", "b"]], columns=["prompt", "prompt"]), None, "the column 'prompt' occurs 2 times"),
    ],
)
def test_a_row_that_makes_no_prompt_is_named(source, template, message):
    with pytest.raises(InvalidRequest, match=message):
        parse_prompts(source, template=template)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", "prompt,expected\nHi,1\nHo\n", "a.csv, line 3: expected 2 values"),
        ("a.jsonl", '{"prompt": "Hi"}\n{"prompt": \n', "a.jsonl, line 2: not JSON"),
        ("a.jsonl", '"Hi"\n[1]\n', "a.jsonl, line 2: expected a text or a mapping"),
        ("a.csv", "prompt,expected\nHi,1\n,2\n", "a.csv, line 3: the prompt is empty"),
        ("a.csv", "id, prompt\n1,Hi\n", "a.csv, line 2: has no `prompt`.*its columns are 'id', ' prompt'"),
        ("a.csv", "prompt,prompt\nHi,Ho\n", "a.csv: the column 'prompt' occurs 2 times"),
        ("a.csv", 'prompt\nHi\n"Ho\nHu\n', "a.csv, line 4: unexpected end of data; is a quote open"),
        ("a.csv", "prompt\nHi\nCaf\xe9\n", "a.csv, line 3: not UTF-8 .*save the file as UTF-8"),
        ("a.jsonl", '"Caf\xe9"\n', "a.jsonl, line 1: not UTF-8"),
        ("a.json", '{"prompt": "Hi"}\n{"prompt": "Ho"}\n', "a.json: not JSON .*one object a line is a .jsonl file"),
        ("a.json", '{"prompt": "Hi"}', "a.json: expected an array of texts or objects"),
        ("a.json", '["Hi", 1]', "a.json, row 2: expected a text or a mapping"),
        ("a.parquet", "prompt", "a.parquet: cannot be read"),
        ("a.xlsx", "prompt", "a.xlsx: cannot be read"),
    ],
)
def test_a_line_of_a_file_that_makes_no_prompt_is_named(tmp_path: Path, name, text, message):
    (tmp_path / name).write_text(text, encoding="latin-1")
    with pytest.raises(InvalidRequest, match=message):
        parse_prompts(tmp_path / name)


def test_an_empty_value_of_a_csv_file_is_a_missing_one_as_it_is_in_a_frame(tmp_path: Path):
    file = tmp_path / "a.csv"
    file.write_text("id,prompt,expected\n,2 + 2?,4\n,Why?,\n,,\n")
    assert [(row.id, dict(row.slots)) for row in parse_prompts(file)] == [("p1", {"expected": "4"}), ("p2", {})]
    file.write_text('city\nLyon\n""\n')
    assert [row.text for row in parse_prompts(file, template="In {city}?")] == ["In Lyon?"]
    file.write_text("city,n\nLyon,1\n,2\n")
    with pytest.raises(InvalidRequest, match=r"a.csv, line 3: no value for the slot \{city\}"):
        parse_prompts(file, template="{n} in {city}?")


def test_a_value_of_a_csv_file_may_be_as_long_as_a_context(tmp_path: Path):
    usual = csv.field_size_limit()
    (tmp_path / "a.csv").write_text(f"prompt\n{'x' * 200_000}\n")
    assert len(parse_prompts(tmp_path / "a.csv")[0].text) == 200_000
    assert csv.field_size_limit() == usual


def test_a_count_in_a_frame_with_missing_values_stays_a_count():
    frame = pd.DataFrame({"prompt": ["2 + 2?", "Why?"], "expected": [4, None]})
    assert [dict(prompt.slots) for prompt in parse_prompts(frame)] == [{"expected": 4}, {}]
