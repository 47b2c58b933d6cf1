"""Figures as they are shown in a page: light or dark as it is, and one image where the page takes styles away."""

from playwright.sync_api import Locator, expect

from tests.browser.lab_page import Lab

DRAW = """import famnb
client = famnb.connect()
client.ask("Hi", max_tokens=8)
famnb.plot.tokens(famnb.calls(client))"""


def shown_images(output: Locator) -> list[str]:
    """The classes of the images that can be seen."""
    return [image.get_attribute("class") or "" for image in output.locator("img").all() if image.is_visible()]


def test_a_figure_follows_the_theme_and_is_one_image_without_styles(lab: Lab):
    lab.notebook(DRAW).run(0)
    expect(lab.output(0).locator("img")).to_have_count(2)
    assert shown_images(lab.output(0)) == ["famnb-on-light"]
    lab.change_theme("JupyterLab Dark")
    expect(lab.output(0).locator(".famnb-on-light")).to_be_hidden()
    assert shown_images(lab.output(0)) == ["famnb-on-dark"]
    lab.save()
    strange = lab.path.with_name("strange.ipynb")
    strange.write_text(lab.path.read_text().replace("famnb.calls(client)", "famnb.calls( client )"))
    lab.load(strange.name)
    expect(lab.output(0).locator("img").first).to_be_visible()
    assert shown_images(lab.output(0)) == ["famnb-on-light"]
