"""The front end's modules one by one, imported by a page as the files that they are."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from famnb.widget.live.base import FRONT, join_front

pytestmark = pytest.mark.browser

ENTRIES = ("live.js", "board.js")


@pytest.fixture
def page(blank_page: Page) -> Page:
    """A page beside the modules, with a clock of its own."""
    page = blank_page

    def serve(route: Any) -> None:
        name = route.request.url.removeprefix("http://front.test/")
        joined = name.removeprefix("joined/")
        body = join_front(joined) if joined != name else (FRONT / name).read_text() if name else ""
        route.fulfill(body=body, content_type="text/javascript" if name else "text/html")

    page.clock.install()
    page.route("**/*", serve)
    page.goto("http://front.test/")
    return page


def test_modules_mean_the_same_joined_as_apart(page: Page):
    """Each entry loads both ways, so no two modules that are joined declare the same name."""
    for name in ENTRIES:
        for path in (f"/{name}", f"/joined/{name}"):
            kind = page.evaluate("async path => typeof (await import(path)).default", path)
            assert kind in ("function", "object"), path


def test_a_front_end_that_widgets_share_is_loaded_once(page: Page):
    """Two widgets, one import and one style; each has a front end of its own, made when its model is known."""
    page.evaluate("""async () => {
      const module = `globalThis.imports = (globalThis.imports ?? 0) + 1;
        export default () => {
          let name;
          return { initialize: ({ model }) => { name = model.get("name"); }, render: ({ el }) => el.append(name) };
        };`;
      const texts = { a: module, b: "body { color: rgb(1, 2, 3); }" };
      const widget_manager = { get_model: async (id) => ({ get: () => texts[id] }) };
      const { default: load } = await import("/loader.js");
      const draw = async (name) => {
        const traits = { name, _front_module: "IPY_MODEL_a", _front_style: "IPY_MODEL_b" };
        const model = { get: (trait) => traits[trait], widget_manager };
        const front = load();
        await front.initialize({ model });
        front.render({ model, el: document.body });
      };
      await Promise.all([draw("one "), draw("two")]);
    }""")
    expect(page.locator("body")).to_have_text("one two")
    expect(page.locator("style")).to_have_count(1)
    assert page.evaluate("[imports, getComputedStyle(document.body).color]") == [1, "rgb(1, 2, 3)"]


def test_edits_wait_for_a_pause_and_keep_their_order(page: Page):
    """The last text of a name counts; what the user does at once comes after what waited; closed, nothing is sent."""
    page.evaluate("""async () => {
      const { makeOutbox } = await import("/outbox.js");
      window.sent = [];
      window.outbox = makeOutbox((message) => window.sent.push(message));
      outbox.later("a", 1);
      outbox.later("a", 2);
      outbox.later("b", 3);
    }""")
    assert page.evaluate("[sent, outbox.holds('a')]") == [[], True]
    page.evaluate("outbox.now(4)")
    assert page.evaluate("[sent, outbox.holds('a')]") == [[2, 3, 4], False]
    page.evaluate("outbox.later('a', 5)")
    page.clock.fast_forward(250)
    assert page.evaluate("sent") == [2, 3, 4, 5]
    page.evaluate("{ outbox.later('a', 6); outbox.close(); outbox.now(7); }")
    page.clock.fast_forward(250)
    assert page.evaluate("sent") == [2, 3, 4, 5]


@pytest.mark.parametrize(
    ("kind", "field", "text", "role"),
    [
        ("number", {"low": 0, "high": 2, "default": 0.1}, "0.5", "textbox"),
        ("integer", {}, "300", "textbox"),
        ("choice", {"choices": ["low", "high"]}, "high", "combobox"),
        ("switch", {}, "false", "combobox"),
        ("model", {"choices": ["pro"], "only": False}, "acme/big", "combobox"),
        ("json", {}, "[1]", "textbox"),
        ("json", {"bare": True, "choices": ["auto"]}, "auto", "combobox"),
    ],
)
def test_a_field_of_each_kind_shows_its_text_and_its_fault(page: Page, kind: str, field: Any, text: str, role: Any):
    """By its label; a fault stands in the place of the help, and what is being written is left alone."""
    whole = {"path": "f", "kind": kind, "help": "Helps by `x`.", "choices": [], "hint": "", "low": None, "high": None}
    page.evaluate(
        """async ([field, text]) => {
          const { drawField } = await import("/field.js");
          window.edits = [];
          window.drawn = drawField(field, (edit) => window.edits.push(edit));
          document.body.append(drawn.element);
          drawn.set(text, false);
        }""",
        [{"default": None, "only": True, "bare": False, **whole, **field}, text],
    )
    control = page.get_by_role(role, name="f", exact=True)
    expect(page.locator("code")).to_have_text("x")
    shown = page.get_by_label("model id") if kind == "model" else control
    expect(shown).to_have_value(text)
    page.evaluate("drawn.mark('not so')")
    expect(page.get_by_role("alert")).to_have_text("not so")
    expect(control).to_have_attribute("aria-invalid", "true")
    page.evaluate("drawn.mark('')")
    expect(page.get_by_role("alert")).to_be_hidden()
    if role == "textbox":
        control.fill("7")
        page.evaluate("drawn.set('8', false)")
        expect(control).to_have_value("7")
        page.evaluate("drawn.set('8', true)")
        expect(control).to_have_value("8")
        assert page.evaluate("edits") == ["7"]


@pytest.mark.parametrize(
    ("kind", "limits", "empty"),
    [("number", {"low": 0, "high": 2, "default": 1}, "default 1"), ("choice", {}, ""), ("switch", {}, "")],
)
def test_what_is_not_set_looks_so_and_can_be_unset_again(page: Page, kind: str, limits: Any, empty: str):
    """A slider before it is moved, a choice before one is made; a button or the first choice takes the value away."""
    field = {"path": "f", "kind": kind, "help": "", "choices": ["1.5", "true"], "hint": "", "low": None, "high": None}
    page.set_content(f"<style>{(FRONT / 'style.css').read_text()}</style><main class='famnb'></main>")
    page.evaluate(
        """async (field) => {
          const { drawField } = await import("/field.js");
          window.edits = [];
          window.drawn = drawField(field, (edit) => window.edits.push(edit));
          document.querySelector("main").append(drawn.element);
        }""",
        {"default": None, "bare": False, **field, **limits},
    )
    marked = page.locator(".famnb-unset")
    expect(marked).to_have_count(1)
    text = "true" if kind == "switch" else "1.5"
    page.evaluate("text => drawn.set(text, true)", text)
    expect(marked).to_have_count(0)
    if kind != "number":
        page.get_by_role("combobox").select_option("")
    else:
        page.get_by_role("button", name="Unset f").click()
        expect(page.get_by_role("slider")).to_have_attribute("aria-valuetext", empty)
        assert page.get_by_role("textbox").get_attribute("placeholder") == empty
        page.get_by_role("slider").fill("0.5")
        expect(marked).to_have_count(0)
        expect(page.get_by_role("slider")).not_to_have_attribute("aria-valuetext", empty)
    assert page.evaluate("edits") == ([""] if kind != "number" else ["", "0.5"])


FORM = """async () => {
  const { isTaken, makeOutbox } = await import("/outbox.js");
  const { drawForm } = await import("/form.js");
  const field = (path) => ({
    path, kind: "integer", help: "", choices: [], hint: "", default: null, low: null, high: null, bare: false,
  });
  window.describe = (name, paths) => ({
    endpoints: ["one", "two"].map((name) => ({ name, title: name, path: `/${name}` })),
    groups: [{ name: "", fields: paths.map(field) }, { name: "Sampling", fields: [field("seed")] }],
    name,
  });
  window.state = (endpoint, values, force = false) => ({
    endpoint, values, force, faults: {}, faulty: [], tools: [], schema: null,
  });
  window.sent = [];
  window.outbox = makeOutbox((message) => sent.push(message), isTaken);
  window.form = drawForm(outbox);
  document.body.append(form.element);
  form.describe(describe("one", ["model", "cap"]));
  form.tell(state("one", { model: "m", cap: "4096" }));
}"""


def test_who_writes_in_a_form_that_is_drawn_anew_goes_on_writing_there(page: Page):
    """In the control of the same name, over what was selected in it; what waits to be sent is not lost either."""
    page.evaluate(FORM)
    page.get_by_label("cap", exact=True).select_text()
    page.get_by_label("model", exact=True).fill("mine")
    page.get_by_label("cap", exact=True).select_text()
    page.evaluate(
        "{ form.describe(describe('two', ['model', 'cap', 'top'])); form.tell(state('two', { cap: '100' })); }"
    )
    page.keyboard.insert_text("many")
    expect(page.get_by_label("cap", exact=True)).to_have_value("many")
    expect(page.get_by_label("model", exact=True)).to_have_value("mine")
    page.clock.fast_forward(250)
    assert page.evaluate("sent.map(({ field, text }) => [field, text])") == [["model", "mine"], ["cap", "many"]]


def test_a_form_that_is_described_again_keeps_the_focus_where_it_is(page: Page):
    """A snapshot that is like the last changes nothing; one that is not leaves a control or a heading the focus."""
    page.evaluate(FORM)
    page.get_by_label("Endpoint", exact=True).focus()
    page.keyboard.press("Tab")
    page.evaluate(
        "{ window.before = form.element.querySelector(':focus'); form.describe(describe('one', ['model', 'cap'])); }"
    )
    assert page.evaluate("document.activeElement === before")
    for name in ("cap", "seed"):
        page.get_by_label(name, exact=True).focus()
        page.evaluate(
            "name => { form.describe(describe(name, ['model', 'cap', name + '2'])); form.tell(state('one', {})); }",
            name,
        )
        expect(page.get_by_label(name, exact=True)).to_be_focused()
    heading = page.locator("summary")
    heading.focus()
    page.evaluate("{ form.describe(describe('one', ['model'])); form.tell(state('one', {})); }")
    expect(heading).to_be_focused()


def test_what_the_kernel_said_before_it_heard_of_an_edit_does_not_undo_it(page: Page):
    """Once it has answered the edit, what it says counts again; a preset that is loaded counts at once."""
    page.evaluate(FORM)
    cap = page.get_by_label("cap", exact=True)
    cap.fill("many")
    page.clock.fast_forward(250)
    page.get_by_label("model", exact=True).fill("mine")
    page.evaluate("form.tell(state('one', { cap: '4096' }))")
    expect(cap).to_have_value("many")
    page.evaluate("{ outbox.answered(); form.tell(state('one', { cap: '50' })); }")
    expect(cap).to_have_value("50")
    page.evaluate("form.tell(state('one', { cap: '7', model: 'theirs' }, true))")
    expect(page.get_by_label("model", exact=True)).to_have_value("theirs")
    page.get_by_label("Endpoint", exact=True).select_option("two")
    cap.focus()
    page.evaluate("form.tell(state('one', {}))")
    expect(page.get_by_label("Endpoint", exact=True)).to_have_value("two")
    page.evaluate("{ outbox.forget(); form.tell(state('one', {})); }")
    expect(page.get_by_label("Endpoint", exact=True)).to_have_value("one")


def test_values_of_variables_are_written_on_while_others_come(page: Page):
    """A column that is added leaves the writer where he was; rows that do not know of an edit yet do not undo it."""
    page.evaluate("""async () => {
      const { drawVariables } = await import("/variables.js");
      window.rows = [];
      window.drawn = drawVariables((said) => (rows = said), () => {});
      document.body.append(drawn.element);
      drawn.tell({ names: ["city"], rows: [], row: 0 }, false);
    }""")
    page.get_by_label("city, row 1").fill("Oso")
    page.keyboard.press("ArrowLeft")
    page.evaluate("drawn.tell({ names: ['city', 'thing'], rows: [{ city: 'Oso' }], row: 0 }, false)")
    page.keyboard.insert_text("l")
    expect(page.get_by_label("city, row 1")).to_have_value("Oslo")
    page.get_by_label("city, row 1").blur()
    page.evaluate("drawn.tell({ names: ['city', 'thing'], rows: [{ city: 'Oso' }], row: 0 }, true)")
    expect(page.get_by_label("city, row 1")).to_have_value("Oslo")
    assert page.evaluate("rows") == [{"city": "Oslo"}]
    page.evaluate("drawn.tell({ names: ['city', 'thing'], rows: [{ city: 'Rome' }], row: 0 }, false)")
    expect(page.get_by_label("city, row 1")).to_have_value("Rome")
