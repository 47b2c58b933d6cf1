import pytest, re, os
from labpage import Lab
from playwright.sync_api import expect
from test_browser_run import SETUP, WAIT, AGAIN
pytestmark = pytest.mark.browser
OUT = os.environ["OUT"]
WHO = "() => { const e = document.activeElement; return e.tagName + '.' + e.className.slice(0,60) + ' ' + (e.textContent||'').slice(0,30) }"
def test_x(lab: Lab):
    lab.notebook(SETUP, WAIT, AGAIN).run(0)
    shown = lab.output(0)
    lab.start(1)
    bar = shown.get_by_role("progressbar")
    expect(bar).to_have_attribute("aria-valuetext", re.compile(r"^([3-9]|\d\d) of 60 done"))
    lab.page.screenshot(path=f"{OUT}/light.png")
    shown.get_by_text("calls a second").click()
    print(lab.page.evaluate(WHO))
    for k in ["Tab","Tab","Tab","Shift+Tab","Shift+Tab","Shift+Tab","Shift+Tab","Shift+Tab"]:
        lab.page.keyboard.press(k); print(k, lab.page.evaluate(WHO))
    lab.command("apputils:change-theme", theme="JupyterLab Dark")
    lab.page.wait_for_timeout(800)
    lab.page.screenshot(path=f"{OUT}/dark.png")
    shown.get_by_role("button", name="Stop").focus()
    lab.page.keyboard.press("Enter")
    lab.settled(1)
    lab.page.wait_for_timeout(800)
    lab.page.screenshot(path=f"{OUT}/end.png")
    lab.reload()
    lab.page.wait_for_timeout(1500)
    lab.page.screenshot(path=f"{OUT}/reload.png")
