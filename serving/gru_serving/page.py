"""Pages of one file: light and dark, and no request to anywhere."""

import html

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_STYLE = (
    ":root{color-scheme:light dark}body{font:16px/1.6 system-ui,sans-serif;margin:2em auto;"
    "padding:0 1em}h1{font-size:1.2em}"
)


def page(title: str, style: str, body: str) -> str:
    """Return a page as HTML, with a policy that lets it load nothing.

    Args:
        title: Title, as text.
        style: Rules of CSS beyond those of all pages.
        body: Content, as HTML.
    """
    return (
        "<!doctype html><html lang=en><meta charset=utf-8>"
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(title)}</title><style>{_STYLE}{style}</style>{body}\n"
    )
