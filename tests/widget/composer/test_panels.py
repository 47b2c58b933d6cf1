"""What stands beside the composer's form: past calls opened exactly, tools, schemas, images, presets and code."""

import ast
import base64
import json
from pathlib import Path

import ipywidgets as widgets
import pydantic
import pytest

import famnb
from famnb.api import Client
from famnb.endpoints import ENDPOINTS
from famnb.widget import Composer
from famnb.widget.composer import presets
from famnb.widget.composer.panels import BODY
from tests.support.composers import (
    choose_endpoint,
    error_of,
    panel_of,
    receive,
    send_prompt,
    ticked_boxes,
    view_of,
    wait_until_idle,
    write_field,
)

PNG_URL = "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(400)).decode()


class Answer(pydantic.BaseModel):
    """Where and how warm."""

    city: str
    degrees: int


@famnb.tool
def weather(city: str) -> str:
    """The weather in a city."""
    return f"sunny in {city}"


@famnb.tool
def clock() -> str:
    """The time."""
    return "noon"


@pytest.fixture(autouse=True)
def preset_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Presets of this test alone."""
    monkeypatch.setenv("FAMNB_PRESETS", str(tmp_path / "presets.json"))
    return tmp_path / "presets.json"


# A past call in the form


def test_the_history_lists_filters_and_opens_with_the_reply(client: Client):
    for prompt, fields in (("About 100% tides_", {}), ("Rivers", {"endpoint": "chat", "system": "Be “brief”."})):
        client.ask(prompt, max_tokens=40, **fields)
    composer = Composer(client)
    rows = panel_of(composer, "History").rows
    assert [row.prompt for row in rows] == ["Rivers", "About 100% tides_"]
    assert "chat · fam-mini · incomplete" in rows[0].facts
    for words, expected in (("100% t", 1), ("s_", 1), ("fam-mini", 1), ("“brief”", 1), ("incomplete", 2), ("xyz", 0)):
        assert len(panel_of(composer, "History", "filter_history", text=words).rows) == expected, words
    before = view_of(composer).form
    looked = panel_of(composer, "History", "show_call", call=rows[0].key)
    assert view_of(composer).form == before
    opened = panel_of(composer, "History", "load_call", call=rows[0].key)
    assert looked.transcript == opened.transcript
    assert composer.request.body()["messages"][-1]["content"] == "Rivers"
    assert client.ledger.call(rows[0].key).reply.text.splitlines()[0].strip("# ") in opened.transcript
    assert opened.call == rows[0].key
    receive(composer, "show_call", call="nothing")
    assert "nothing" in error_of(composer)


def test_line_ends_that_a_page_does_not_know_are_sent_as_they_were(client: Client):
    composer = Composer(client)
    composer.load(famnb.compose("messages", "a\r\nb\rc"))
    send_prompt(composer, "a\nb\nc")
    assert wait_until_idle(composer).reply.request == famnb.compose("messages", "a\r\nb\rc")


# Tools and schema


def test_given_tools_and_schema_are_ticked_and_sent(client: Client):
    composer = Composer(client, prompt="Hi", tools=[weather, clock], schema=Answer)
    body = composer.request.body()
    assert composer.request == famnb.compose(
        "web", "Hi", tools=[weather, clock], schema=Answer, model="fam-2-5-pro", stream=True
    )
    assert [tool["function"]["name"] for tool in body["tools"]] == ["weather", "clock"]
    assert ticked_boxes(composer) == {"weather", "clock", "Answer as JSON"}
    receive(composer, "tick", box="weather", isOn=False)
    assert [tool["function"]["name"] for tool in composer.request.body()["tools"]] == ["clock"]
    receive(composer, "tick", box="clock", isOn=False)
    receive(composer, "tick", box="Answer as JSON", isOn=False)
    assert set(composer.request.body()) == {"model", "messages", "stream", "stream_options"}
    assert ticked_boxes(composer) == set()


def test_tools_that_are_written_are_sent_beside_those_that_are_ticked(client: Client):
    composer = Composer(client, prompt="Hi", tools=[weather], endpoint="web")
    write_field(composer, "tools", json.dumps(famnb.compose("web", "Hi", tools=[weather, clock]).body()["tools"]))
    assert [tool["function"]["name"] for tool in composer.request.body()["tools"]] == ["weather", "clock"]
    composer.load(famnb.compose("web", "x", tools=[clock]))
    assert ticked_boxes(composer) == set()
    assert [tool["function"]["name"] for tool in composer.request.body()["tools"]] == ["clock"]


def test_a_schema_goes_along_to_where_it_has_a_place(client: Client):
    composer = Composer(client, prompt="Hi", schema=Answer)
    assert composer.request == famnb.compose("responses", "Hi", schema=Answer, model="fam-2-5-pro", stream=True)
    for name in ("chat", "messages", "responses"):
        choose_endpoint(composer, name)
    assert composer.request == famnb.compose("responses", "Hi", schema=Answer, model="fam-2-5-pro", stream=True)
    choose_endpoint(composer, "messages")
    assert "`Answer as JSON` is left out: messages cannot carry it" in view_of(composer).prompt.remarks


# Images


@pytest.mark.parametrize("name", ENDPOINTS)
def test_images_become_parts_of_the_message_and_go_along(client: Client, name: str):
    composer = Composer(client, prompt="What is it?", endpoint="chat")
    receive(composer, "add_image", name="a.png", url=PNG_URL)
    receive(composer, "add_image", name="", url="https://example.org/b")
    pictures = [(picture.label, picture.url) for picture in view_of(composer).prompt.pictures]
    assert pictures == [("a.png, png, 1 kB", PNG_URL), ("https://example.org/b", "")]
    choose_endpoint(composer, name)
    request = composer.request
    data = PNG_URL.partition(",")[2]
    assert all(text in str(request.body()) for text in (data, "https://example.org/b"))
    assert client.send(request).status == "completed"
    assert data[:100] not in str(widgets.Widget.get_manager_state())
    for kind in ("curl", BODY):
        panel_of(composer, "Code")
        preview = panel_of(composer, "Code", "set_code_kind", kind=kind).html
        assert data in composer.read_code()
        assert data not in preview
        assert data[:16] in preview


def test_what_is_no_image_is_refused_and_an_image_is_removed(client: Client):
    composer = Composer(client, prompt="What is it?", endpoint="chat")
    for url in (PNG_URL, "data:image/png;base64,bm90ZXM=", "cat"):
        receive(composer, "add_image", name="", url=url)
    assert "expected an address" in error_of(composer)
    (picture,) = view_of(composer).prompt.pictures
    assert picture.label == "image, png, 1 kB"
    receive(composer, "remove_image", image=0)
    assert view_of(composer).prompt.pictures == ()


# Presets and code


def test_a_preset_is_saved_loaded_and_deleted_from_the_form(client: Client, preset_file: Path):
    composer = Composer(client, prompt="What is a tide?", system="Be brief.", endpoint="web")
    write_field(composer, "temperature", "0.7")
    receive(composer, "add_image", name="a.png", url=PNG_URL)
    assert panel_of(composer, "Presets").names == ()
    receive(composer, "save_preset", name=" ")
    assert "expected a name" in error_of(composer)
    receive(composer, "save_preset", name="tides")
    assert "the data of an image" in error_of(composer)
    receive(composer, "remove_image", image=0)
    assert panel_of(composer, "Presets", "save_preset", name="tides").note == "“tides” is saved."
    old = composer.request

    other = Composer(client)
    assert panel_of(other, "Presets").names == ("tides",)
    panel_of(other, "Presets", "load_preset", name="tides")
    assert other.request == old
    assert panel_of(other, "Presets", "delete_preset", name="tides").names == ()
    assert presets.names() == ()
    receive(other, "load_preset", name="tides")
    assert "there is no 'tides'" in error_of(other)


def test_the_code_follows_form_and_kind(client: Client, server: famnb.service.Server):
    composer = Composer(client)
    assert "write a prompt" in panel_of(composer, "Code").note
    receive(composer, "set_prompt", text="What is a tide?")
    kinds = panel_of(composer, "Code").kinds
    assert kinds == ("famnb", "curl", "anthropic", BODY)
    seen = set()
    for kind in kinds:
        panel_of(composer, "Code", "set_code_kind", kind=kind)
        code = composer.read_code()
        seen.add(code)
        assert "What is a tide?" in code
        assert (server.url in code) == (kind != BODY)
        assert server.key not in code
    assert len(seen) == 4
    assert json.loads(composer.read_code()) == composer.request.body()
    panel_of(composer, "Code", "set_code_kind", kind="anthropic")
    choose_endpoint(composer, "web")
    assert panel_of(composer, "Code").kind == "openai"
    ast.parse(composer.read_code())


def test_the_code_of_a_talk_has_all_of_it(client: Client):
    composer = Composer(client)
    for prompt in ("My name is Ada.", "What is my name?"):
        send_prompt(composer, prompt)
        wait_until_idle(composer)
    panel_of(composer, "Code")
    assert composer.read_code().count("'role': 'user'") == 2
    receive(composer, "set_prompt", text="And now?")
    panel_of(composer, "Code")
    assert composer.read_code().count("'role': 'user'") == 3
