"""The front end's modules one by one, imported by a page as the files that they are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from famnb.widget.live.base import FRONT, join_front

pytestmark = pytest.mark.browser

ENTRIES = ("live.js", "board.js", "composer.js", "copy_box.js")


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page beside the modules, with a clock of its own."""
    context = browser.new_context()
    page = context.new_page()

    def serve(route: Any) -> None:
        name = route.request.url.removeprefix("http://front.test/")
        joined = name.removeprefix("joined/")
        body = join_front(joined) if joined != name else (FRONT / name).read_text() if name else ""
        route.fulfill(body=body, content_type="text/javascript" if name else "text/html")

    page.clock.install()
    page.route("**/*", serve)
    page.goto("http://front.test/")
    yield page
    context.close()


def test_modules_mean_the_same_joined_as_apart(page: Page):
    """Each entry loads both ways, so no two modules that are joined declare the same name."""
    for name in ENTRIES:
        for path in (f"/{name}", f"/joined/{name}"):
            kind = page.evaluate("async path => typeof (await import(path)).default", path)
            assert kind in ("function", "object"), path


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
