"""Sphinx' settings for the site; `docs/sphinx/build_site.py` builds it."""

import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT), str(HERE)]

import keras_gru  # noqa: E402

project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["name"]
author = "The keras-gru authors"
version = release = keras_gru.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "docstrings",
    "command_help",
    "code_tables",
    "public_names",
]
root_doc = "index"
templates_path: list[str] = []

# The pages are written for CommonMark as GitHub reads it; anchors are the ones GitHub makes.
myst_heading_anchors = 6
myst_enable_extensions = ["deflist"]
smartquotes = False  # "--flag" stays so
highlight_language = "text"
pygments_style = "default"

# Code in single backticks links to the object of that name, where the site has one.
default_role = "py:obj"
add_module_names = False
python_maximum_signature_line_length = 80
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_default_options = {"members": True}
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False
napoleon_custom_sections = [("Call arguments", "params_style")]

html_theme = "pydata_sphinx_theme"
html_title = f"{project} {version}"
html_static_path = ["static"]
html_favicon = "static/icon.svg"
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_context = {"default_mode": "auto"}
html_sidebars = {"index": []}
html_theme_options = {
    "logo": {"text": project},
    "header_links_before_dropdown": 5,
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "show_toc_level": 2,
    "show_nav_level": 1,
    "navigation_with_keys": False,
    "footer_start": [],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
