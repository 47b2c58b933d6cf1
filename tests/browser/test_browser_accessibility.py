"""What axe-core finds in the widgets, in JupyterLab's light theme and in its dark one."""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe
from labpage import Lab
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

CONNECT = "import famnb\nclient = famnb.connect()"
COMPOSER = "composer = famnb.Composer(client)\ncomposer"
DASHBOARD = 'reply = client.ask("Why?", max_tokens=64)\nfamnb.Dashboard(client)'
ASKED = "```python\nreturn 'a' + str(1)  # so\n```\n\n|a|b|\n|-|-|\n|1|2|"
SERIOUS = ("serious", "critical")


def send(lab: Lab) -> None:
    """Have a whole answer under the prompt."""
    lab.output(1).get_by_label("Prompt").fill(ASKED)
    lab.output(1).get_by_label("Prompt").press("Control+Enter")
    expect(lab.output(1)).to_contain_text("tokens out")


WIDGETS = {
    "composer": (COMPOSER, send),
    "dashboard": (DASHBOARD, lambda lab: expect(lab.output(1)).to_contain_text("completed")),
}


@pytest.mark.parametrize("widget", WIDGETS)
def test_axe_finds_no_serious_fault(lab: Lab, widget: str):
    """Names, roles, order and contrast: nothing that axe calls serious or critical, whichever theme is on."""
    source, use = WIDGETS[widget]
    lab.notebook(CONNECT, source).run(0)
    lab.run(1)
    use(lab)
    lab.page.mouse.move(0, 0)
    lab.output(1).evaluate("each => { each.id = 'looked-at'; }")
    for theme in ("JupyterLab Light", "JupyterLab Dark"):
        lab.command("apputils:change-theme", theme=theme)
        expect(lab.page.locator(f'body[data-jp-theme-name="{theme}"]')).to_have_count(1)
        found = Axe().run(lab.page, context="#looked-at").response
        faults = [
            (fault["id"], node["html"][:200], node["failureSummary"])
            for fault in found["violations"]
            if fault["impact"] in SERIOUS
            for node in fault["nodes"]
        ]
        assert faults == []
        assert len(found["passes"]) > 5
