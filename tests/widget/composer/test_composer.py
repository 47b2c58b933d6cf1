"""The composer against the real client and the local service, driven as its buttons and controls drive it."""

from __future__ import annotations

import json
from collections.abc import Iterator

import ipywidgets as widgets
import pytest

import famnb
from famnb.client.client import BlockingClient as Client
from famnb.widget import Composer
from famnb.widget.composer.code_export import write_cell
from tests.support.composers import find_control, list_widgets, receive, wait_until_idle

pytestmark = pytest.mark.usefixtures("outputs")


@pytest.fixture
def client(server: famnb.service.Server) -> Iterator[Client]:
    """A client of the local service."""
    with Client(base_url=server.url, api_key=server.key) as client:
        yield client


@pytest.mark.parametrize("endpoint", ["chat", "responses", "web", "messages"])
def test_each_endpoint_is_chosen_sent_and_shown(client: Client, outputs: list[dict[str, str]], endpoint: str):
    """Choosing an endpoint keeps the prompt; the reply ends as ordinary output in three forms."""
    composer = Composer(client, prompt="Say hello.", system="Be kind.")
    find_control(composer, "Endpoint").value = endpoint
    assert composer.request.endpoint == endpoint
    stream = composer.send()
    wait_until_idle(composer, replies=1)
    assert composer.reply is stream.reply
    assert composer.replies == (stream.reply,)
    assert set(outputs[-1]) == {"text/html", "text/markdown", "text/plain"}
    assert "Say hello." in outputs[-1]["text/plain"]
    assert "Be kind." in outputs[-1]["text/plain"]
    assert stream.reply.text.split("\n")[-1] in outputs[-1]["text/plain"]


def test_only_what_was_set_is_sent(client: Client):
    """The body holds the prompt, the model and the wish to stream; defaults are the service's."""
    composer = Composer(client, prompt="Hi")
    assert composer.request.body() == {
        "model": "fam-2-5-pro",
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}],
        "stream": True,
    }


def test_a_fault_stands_at_its_control_and_keeps_send_from_sending(client: Client):
    """In place while typing, and as the reason beside Send; mended, it goes."""
    composer = Composer(client, prompt="Hi")
    find_control(composer, "All fields").value = True
    find_control(composer, "temperature").value = "3"
    assert composer._prompt_box.fault == "temperature: should be less than or equal to 2, got 3"
    assert any("less than or equal to 2" in note.value for note, _ in composer._editor.form._notes.values())
    with pytest.raises(famnb.InvalidRequest, match="temperature"):
        composer.send()
    find_control(composer, "temperature").value = "0.3"
    assert composer._prompt_box.fault == ""
    assert composer.request.body()["temperature"] == 0.3


def test_without_a_prompt_nothing_is_sent(client: Client):
    """Said in words, whether by the button or from code."""
    composer = Composer(client)
    with pytest.raises(famnb.InvalidRequest, match="write a prompt"):
        composer.send()
    receive(composer, kind="send", prompt="  ")
    assert "write a prompt" in composer._trouble.value
    assert composer.reply is None


def test_a_second_send_while_streaming_sends_nothing(scripted):
    """One wish, one request; once the reply has ended, the next is sent."""
    started = []

    class Slow:
        def start(self, request: famnb.MessagesRequest, labels: object) -> object:
            started.append(scripted())
            return started[-1]

    composer = Composer(Slow(), prompt="Hi")
    receive(composer, kind="send", prompt="Hi")
    receive(composer, kind="send", prompt="Hi")
    assert composer.send() is started[0]
    composer.stop()
    assert started[0].stopped
    started[0].ends(status="cancelled")
    wait_until_idle(composer, replies=1)
    assert composer.send() is started[1]
    assert len(started) == 2
    started[1].ends(status="completed")


def test_the_prompt_comes_with_the_wish_to_send_it(client: Client):
    """What was typed last is sent even if the trait's own update is late."""
    composer = Composer(client, prompt="Say")
    receive(composer, kind="send", prompt="Say hello.")
    wait_until_idle(composer, replies=1)
    assert "Say hello." in str(composer.replies[0].request.body())


def test_another_endpoint_says_what_it_cannot_carry_and_gives_it_back(client: Client):
    """The loss is a note; back at the first endpoint everything is as it was left."""
    composer = Composer(client, prompt="Hi")
    find_control(composer, "All fields").value = True
    find_control(composer, "thinking.type").value = "enabled"
    find_control(composer, "thinking.budget_tokens").value = "256"
    find_control(composer, "max_tokens").value = "700"
    find_control(composer, "Endpoint").value = "web"
    assert "nearest reasoning effort" in composer._editor.notes.value
    assert composer.request.body()["max_new_tokens"] == 700
    assert composer.request.body()["reasoning"] == {"effort": "low"}
    find_control(composer, "Endpoint").value = "messages"
    assert composer.request.body()["thinking"] == {"type": "enabled", "budget_tokens": 256}


def test_a_thinking_budget_turns_thinking_on(client: Client):
    """A budget without a type would be refused: the type is set, seen, and unset with the budget."""
    composer = Composer(client, prompt="Hi")
    find_control(composer, "All fields").value = True
    find_control(composer, "thinking.budget_tokens").value = "256"
    assert find_control(composer, "thinking.type").value == "enabled"
    assert composer.request.body()["thinking"] == {"type": "enabled", "budget_tokens": 256}
    find_control(composer, "thinking.budget_tokens").value = ""
    assert "thinking" not in composer.request.body()


def test_what_was_chosen_is_not_changed_by_what_it_implies(client: Client):
    """Thinking that was switched off or on stays so, whatever happens to its budget."""
    composer = Composer(client, prompt="Hi")
    find_control(composer, "Reasoning").value = True
    for chosen in ("disabled", "enabled"):
        find_control(composer, "thinking.type").value = chosen
        for budget in ("256", ""):
            find_control(composer, "thinking.budget_tokens").value = budget
            assert composer.request.body()["thinking"]["type"] == chosen


@pytest.mark.parametrize(("endpoint", "place"), [("web", "response_format"), ("responses", "text.format")])
def test_a_schema_asks_for_json_by_it(client: Client, endpoint: str, place: str):
    """A schema beside the type `text` would be ignored without a word."""
    composer = Composer(client, endpoint=endpoint, prompt="Hi")
    find_control(composer, "All fields").value = True
    schema = ".json_schema.schema" if endpoint == "web" else ".schema"
    find_control(composer, place + schema).value = '{"type": "object"}'
    assert find_control(composer, f"{place}.type").value == "json_schema"


ASKED = {"include_usage": True}


def test_a_form_asks_a_stream_for_its_usage_and_shows_that(client: Client):
    """Set as if the user had, in the form, the request and its code; gone without a stream, and back with it."""
    composer = Composer(client, endpoint="web", prompt="Hi")
    find_control(composer, "All fields").value = True
    switch = find_control(composer, "stream_options.include_usage")
    assert (switch.value, composer.request.body()["stream_options"]) == ("true", ASKED)
    assert "stream_options" in write_cell(composer.request, kind="famnb", base_url="http://127.0.0.1")
    assert composer._editor.notes.value == ""
    find_control(composer, "stream").value = "false"
    assert "stream_options" not in composer.request.body()
    find_control(composer, "stream").value = "true"
    assert composer.request.body()["stream_options"] == ASKED
    composer.send()
    wait_until_idle(composer, replies=1)
    assert composer.replies[0].usage.source("output_tokens") == "reported"


def test_what_the_user_says_about_usage_stands(client: Client):
    """Not asked for, it stays so, whatever becomes of the stream and of the endpoint."""
    composer = Composer(client, endpoint="web", prompt="Hi")
    find_control(composer, "All fields").value = True
    find_control(composer, "stream_options.include_usage").value = ""
    for name, value in (("stream", "false"), ("stream", "true"), ("Endpoint", "messages"), ("Endpoint", "web")):
        find_control(composer, name).value = value
        assert "stream_options" not in composer.request.body()


def test_asking_for_usage_is_no_loss_at_an_endpoint_that_needs_no_asking(client: Client):
    """Nothing is said of what the form set by itself; back again it is set again."""
    composer = Composer(client, prompt="Hi")
    for _ in range(2):
        find_control(composer, "Endpoint").value = "web"
        assert composer.request.body()["stream_options"] == ASKED
        find_control(composer, "Endpoint").value = "messages"
        assert composer._editor.notes.value == ""


def test_a_request_that_is_opened_stays_as_it_is(client: Client):
    """Its owner did not ask for usage."""
    composer = Composer(client, prompt="Hi")
    request = famnb.WebChatRequest(model="fam-2-5-pro", messages=[{"role": "user", "content": "Hi"}], stream=True)
    composer.open(request)
    assert composer.request == request


def test_the_chosen_model_goes_along_and_comes_back(client: Client):
    """Served there too, it stays; where it is not, the endpoint's own, and at the way back the one that was left."""
    composer = Composer(client, prompt="Hi")
    models = []
    find_control(composer, "model").value = "fam-2-5-mini"
    for name in ("web", "chat", "web"):
        find_control(composer, "Endpoint").value = name
        models.append(composer.request.model)
    assert models == ["fam-2-5-mini", "fam-mini", "fam-2-5-mini"]


def test_changing_endpoints_leaves_no_widgets_behind(client: Client):
    """A long session must not fill kernel and page with controls that nobody sees."""
    composer = Composer(client)
    find_control(composer, "All fields").value = True
    counts = []
    for name in ("web", "messages", "web", "messages"):
        find_control(composer, "Endpoint").value = name
        counts.append(len(widgets.Widget.get_manager_state()["state"]))
    assert counts[0] == counts[2]
    assert counts[1] == counts[3]


def test_inside_an_output_widget_the_reply_stays_where_it_streamed(client: Client, outputs: list[dict[str, str]]):
    """An Output widget never hears of a replacement: the live view is not taken away."""
    composer = Composer(client, prompt="Say hello.")
    composer._conversation.output.captured = True
    composer.send()
    wait_until_idle(composer, replies=1)
    assert not composer._prompt_box.is_hidden


def test_a_whole_conversation_replaces_the_prompt(client: Client):
    """Every field is reachable, also the one that the prompt usually fills."""
    composer = Composer(client)
    find_control(composer, "All fields").value = True
    find_control(composer, "messages").value = '[{"role": "user", "content": "a"}]'
    assert composer._prompt_box.replaced
    assert composer.request.body()["messages"] == [{"role": "user", "content": "a"}]


def test_the_json_body_is_shown_as_it_is_sent(client: Client):
    """To look at and to copy; it follows every edit while it is open."""
    composer = Composer(client, prompt="<img src=x>")
    find_control(composer, "JSON body").value = True
    panel = composer._panels["JSON body"]
    assert "POST /v1/messages" in panel._message.value
    assert json.loads(panel._body.text) == composer.request.body()
    composer._prompt_box.prompt = "Another"
    assert json.loads(panel._body.text) == composer.request.body()


def test_the_error_of_a_callback_is_shown_under_the_widget(server: famnb.service.Server):
    """A failed call is a transcript with its error; a failure to start is said in place."""
    client = Client(base_url=server.url, api_key=server.key)
    client.close()
    composer = Composer(client, prompt="Hi")
    receive(composer, kind="send", prompt="Hi")
    assert 'role="alert"' in composer._trouble.value
    assert "closed" in composer._trouble.value
    assert not composer._prompt_box.busy


def test_a_refused_call_is_shown_with_its_error(server: famnb.service.Server, outputs: list[dict[str, str]]):
    """The service's words, in place of an answer."""
    with Client(base_url=server.url, api_key="wrong-key") as client:
        composer = Composer(client, prompt="Hi")
        composer.send()
        wait_until_idle(composer, replies=1)
    assert "AuthenticationError" in outputs[-1]["text/plain"]
    assert "failed" in outputs[-1]["text/html"]


def test_the_key_is_in_no_widget(client: Client, server: famnb.service.Server):
    """Whatever may be saved as widget state, the key is not in it."""
    composer = Composer(client, prompt="Hi")
    find_control(composer, "All fields").value = True
    composer.send()
    wait_until_idle(composer, replies=1)
    assert server.key not in str(widgets.Widget.get_manager_state()) + repr(composer)


@pytest.mark.parametrize("endpoint", ["chat", "responses", "web", "messages"])
def test_every_control_has_a_label_and_a_tooltip(client: Client, endpoint: str):
    """No control is without a name for a screen reader."""
    composer = Composer(client, endpoint=endpoint)
    for title in ("All fields", "Presets", "History", "Code", "JSON body"):
        find_control(composer, title).value = True
    controls = [each for each in list_widgets(composer) if hasattr(each, "description")]
    inputs = [control for control in controls if not isinstance(control, widgets.HTML)]
    assert len(inputs) > 20
    assert all(each.description and each.tooltip for each in inputs)
