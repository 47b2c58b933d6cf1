"""Keys leave notebooks wherever they stand, and nothing else changes."""

import json
import stat

import nbformat
import pytest
from hypothesis import given
from hypothesis import strategies as st

from famnb import cli
from famnb.errors import FamnbError
from famnb.scrub import scrub

KEY = "fam-key/0123456789<abc>"
SHAPED = "sk-proj-abcdefghijklmnop0123"


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("FAM_API_KEY", KEY)


def cell(source="", outputs=(), **fields):
    fixed = {"cell_type": "code", "execution_count": None, "id": "a1", "metadata": {}}
    return {**fixed, "outputs": list(outputs), "source": source, **fields}


def book(*cells, **metadata):
    return {"cells": list(cells), "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


@pytest.fixture
def write_notebook(tmp_path):
    """Writes a notebook as JupyterLab does, and gives its path."""

    def write(notebook):
        path = tmp_path / "note.ipynb"
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")
        return path

    return write


def display(data):
    return {"output_type": "display_data", "data": data, "metadata": {}}


ERROR = {"output_type": "error", "ename": "E", "evalue": "", "traceback": []}
STATE = "application/vnd.jupyter.widget-state+json"
PLACES = {
    "cell 1, source": book(cell(["import famnb\n", f"key = '{KEY}'\n"])),
    "cell 2, source": book(cell(), cell(f"%env FAM_API_KEY={KEY}", id="b2")),
    "cell 1, metadata": book(cell(metadata={"papermill": {"parameters": {"k": KEY}}})),
    "cell 1, attachments": book(
        {"cell_type": "markdown", "id": "a", "metadata": {}, "source": "", "attachments": {"a": {"text/plain": KEY}}}
    ),
    "cell 1, output 1 text": book(cell("", [{"output_type": "stream", "name": "stdout", "text": [f"x {KEY}\n"]}])),
    "cell 1, output 1 text/html": book(cell("", [display({"text/html": "<b>fam-key/0123456789&lt;abc&gt;</b>"})])),
    "cell 1, output 1 image/svg+xml": book(cell("", [display({"image/svg+xml": f"<svg>{KEY}</svg>"})])),
    "cell 1, output 1 application/json": book(cell("", [display({"application/json": {"deep": [{"a": KEY}]}})])),
    "cell 1, output 1 evalue": book(cell("", [{**ERROR, "evalue": f"bad key {KEY}"}])),
    "cell 1, output 1 traceback": book(cell("", [{**ERROR, "traceback": ["a", f"\x1b[31m{KEY}\x1b[0m"]}])),
    "notebook metadata": book(papermill={"environment_variables": {"X": KEY}}),
    "widget state": book(widgets={STATE: {"state": {"1": {"model_name": "TextModel", "state": {"value": KEY}}}}}),
}


@pytest.mark.parametrize("location", PLACES)
def test_a_key_of_the_environment_is_found_everywhere(write_notebook, location):
    path = write_notebook(PLACES[location])
    findings = scrub(path)
    assert {str(finding).partition(": ")[::2] for finding in findings} == {
        (location, f"FAM_API_KEY, {29 if 'html' in location else 23} characters")
    }
    assert "0123456789" not in path.read_text()
    assert "[key]" in path.read_text()
    nbformat.validate(nbformat.read(path, 4))
    assert scrub(path) == []


@pytest.mark.parametrize(
    "text",
    [
        SHAPED,
        "famnb-AAAABBBBCCCCDDDD0000eeee11112222",
        "Authorization: Bearer abcdef123456",
        "{'x-api-key': 'abc12345'}",
        'Client(api_key="my-secret-0123")',
        "export SOME_API_KEY=abcdef123456",
        "AKIAABCDEFGHIJKLMNOP",
        "ghp_" + "a1" * 20,
        "hf_" + "a1" * 17,
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcdefgh1234",
        '{\\"x-api-key\\": \\"abc12345\\"}',
    ],
)
def test_a_key_is_known_by_its_shape(write_notebook, text):
    path = write_notebook(book(cell(text)))
    assert len(scrub(path)) == 1
    assert "[key]" in json.loads(path.read_text())["cells"][0]["source"]
    assert scrub(path) == []


@pytest.mark.parametrize(
    "text",
    [
        'api_key=os.getenv("FAM_API_KEY")',
        'Client(api_key="your-key-here")',
        "headers: Authorization: Bearer <API_KEY>",
        "Bearer authentication",
        "FAM_API_KEY = get_the_key_2(name)",
        "the sk-learn package and famnb-notebooks, fam-2-5-pro",
        "task-0123456789abcdefghij",
    ],
)
def test_what_only_speaks_of_keys_stays(write_notebook, text):
    path = write_notebook(book(cell(text)))
    before = path.read_bytes()
    assert scrub(path) == []
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("source", "clean"),
    [
        (f"a \x1b[1m{KEY[:9]}\x1b[0m{KEY[9:]} b", "a \x1b[1m[key]\x1b[0m b"),
        ([f"a {KEY[:9]}\n", f"{KEY[9:]} b\n"], ["a [key]\n", " b\n"]),
        (f"{SHAPED[:12]}\x1b[31m{SHAPED[12:]}", "[key]\x1b[31m"),
        (f"{KEY} and {KEY}{SHAPED}", "[key] and [key][key]"),
        (f"https://x/?k={KEY.replace('/', '%2F').replace('<', '%3C').replace('>', '%3E')}", "https://x/?k=[key]"),
        (r'{"k": "fam-key\/0123456789\u003Cabc\u003e"}', '{"k": "[key]"}'),
    ],
    ids=["colours", "lines", "a shape in colours", "several", "in an address", "in JSON in JSON"],
)
def test_a_key_that_is_cut_or_written_otherwise_is_found(write_notebook, source, clean):
    path = write_notebook(book(cell(source)))
    scrub(path)
    assert json.loads(path.read_text())["cells"][0]["source"] == clean
    assert scrub(path) == []


def test_the_value_of_a_password_field_is_a_key_whatever_it_looks_like(write_notebook):
    password = {"model_name": "PasswordModel", "state": {"description": "Key", "value": "hunter2"}}
    text = {"model_name": "TextModel", "state": {"value": "hunter2"}}
    path = write_notebook(book(widgets={STATE: {"state": {"1": password, "2": text}, "version_major": 2}}))
    assert [str(finding) for finding in scrub(path)] == ["widget state: value of a password field, 7 characters"]
    state = json.loads(path.read_text())["metadata"]["widgets"][STATE]["state"]
    assert [state[number]["state"]["value"] for number in "12"] == ["[key]", "hunter2"]
    assert scrub(path) == []


def test_an_image_is_no_text(write_notebook):
    path = write_notebook(book(cell("", [display({"image/png": f"AAAA+sk-{'a' * 40}"})])))
    assert scrub(path) == []


FORMS = {
    "jupyter": lambda notebook: json.dumps(notebook, indent=1, ensure_ascii=False) + "\n",
    "compact": lambda notebook: json.dumps(notebook, separators=(",", ":")),
    "tabs and crlf": lambda notebook: "\ufeff" + json.dumps(notebook, indent="\t").replace("\n", "\r\n") + "\r\n\r\n",
}


@pytest.mark.parametrize("form", FORMS)
def test_everything_else_keeps_its_form(tmp_path, form):
    notebook = {"zzz": 1.50, **book(cell(f"é \U0001f600 \ud83d {KEY} \u2028"), cell("other \t \x7f"), title="é")}
    path = tmp_path / "note.ipynb"
    text = FORMS[form](notebook).replace("\ud83d ", "\\ud83d ")
    path.write_bytes(text.encode())
    path.chmod(0o640)
    scrub(path)
    assert path.read_bytes().decode() == text.replace(KEY, "[key]")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert list(tmp_path.iterdir()) == [path]


@given(texts=st.lists(st.text(), max_size=6), places=st.lists(st.integers(0, 20), max_size=4))
def test_any_text_around_a_key_survives(tmp_path_factory, texts, places):
    lines = list(texts)
    for index in places:
        lines.insert(index, f"{KEY}\n")
    path = tmp_path_factory.mktemp("book") / "note.ipynb"
    path.write_text(json.dumps(book(cell(lines))))
    assert len(scrub(path)) == len(places)
    lines_after = json.loads(path.read_text())["cells"][0]["source"]
    assert lines_after == [line.replace(KEY, "[key]") for line in lines]


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b"42", b'"nbformat"', b'{"cells": []}', b"\xff\xfe", b"[" * 200_000]
)
def test_what_is_no_notebook_is_refused_untouched(tmp_path, capsys, data):
    (tmp_path / "bad.ipynb").write_bytes(data)
    with pytest.raises(FamnbError, match=r"bad\.ipynb: not a notebook: expected"):
        scrub(tmp_path / "bad.ipynb")
    (tmp_path / "good.ipynb").write_text(json.dumps(book(cell(KEY))))
    assert cli.main(["scrub", str(tmp_path / "bad.ipynb"), str(tmp_path / "good.ipynb")]) == 1
    assert "not a notebook" in capsys.readouterr().err
    assert KEY not in (tmp_path / "good.ipynb").read_text()
    assert (tmp_path / "bad.ipynb").read_bytes() == data


def test_check_finds_and_changes_nothing(write_notebook, capsys):
    path = write_notebook(book(cell([f"{KEY}\n", SHAPED])))
    before = path.read_bytes()
    assert cli.main(["scrub", "--check", str(path)]) == 1
    assert path.read_bytes() == before
    assert cli.main(["scrub", str(path)]) == 0
    assert cli.main(["scrub", "--check", str(path)]) == 0
    printed = capsys.readouterr().out
    assert printed.splitlines() == [
        *[f"{path}: cell 1, source: FAM_API_KEY, 23 characters", f"{path}: cell 1, source: sk-…, 28 characters"],
        f"{path}: 2 keys found",
        *[f"{path}: cell 1, source: FAM_API_KEY, 23 characters", f"{path}: cell 1, source: sk-…, 28 characters"],
        f"{path}: 2 keys removed",
        f"{path}: no key found",
    ]


def test_a_missing_file_is_a_message(tmp_path, capsys):
    assert cli.main(["scrub", str(tmp_path / "none.ipynb")]) == 1
    assert "none.ipynb" in capsys.readouterr().err
