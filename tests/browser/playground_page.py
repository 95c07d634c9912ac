"""Where the playground's pages are, and what they show."""

from urllib.parse import urlencode


def address(server, model, view, scheme="http"):
    query = urlencode({"model": model, "view": view})
    return f"{scheme}://localhost:{server.rest_port}/playground/#{query}"


def answers(page):
    """The label, and the bars by name."""
    names = page.locator(".answer-card:visible .name").all_inner_texts()
    values = page.locator(".answer-card:visible .bars .number").all_inner_texts()
    return dict(zip(names, values, strict=True))
