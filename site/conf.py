"""Sphinx's configuration of the website. Its source pages are made by `builder/pages.py`."""

import sys
from pathlib import Path

from inferlab import __version__

sys.path.insert(0, str(Path(__file__).parent))
from builder import PAGES

STATIC = PAGES / "_static"

project = "InferLab"
version = release = __version__
author = "the InferLab authors"
project_copyright = "the InferLab authors. Text CC BY 4.0, code Apache-2.0"
language = "en"

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "builder.docstrings", "builder.katex"]
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
myst_update_mathjax = False
nb_execution_mode = "off"
nb_number_source_lines = False
nb_code_prompt_show = "Show the {type}"
nb_code_prompt_hide = "Hide the {type}"
exclude_patterns = ["_static"]
default_role = "code"
add_module_names = False
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_preserve_defaults = True
toc_object_entries = False

html_theme = "furo"
html_title = "InferLab"
html_static_path = [str(STATIC)]
html_css_files = ["katex/katex.css", "site.css"]
html_js_files = [("site.mjs", {"type": "module"})]
html_math_renderer = "katex"
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_use_index = False
html_domain_indices = False
html_permalinks_icon = "#"
html_favicon = str(STATIC / "icon.svg")
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "github-dark"
html_logo = str(STATIC / "icon.svg")
html_theme_options = {
    "top_of_page_buttons": [],
    "light_css_variables": {
        "font-stack": "'Inter', system-ui, sans-serif",
        "font-stack--monospace": "'JetBrains Mono', ui-monospace, monospace",
        "color-background-primary": "#fdfcf9",
        "color-background-secondary": "#f6f3ec",
        "color-background-hover": "#ebe6da",
        "color-background-hover--transparent": "#ebe6da00",
        "color-background-border": "#e4dfd3",
        "color-foreground-primary": "#1a2330",
        "color-foreground-secondary": "#4c5766",
        "color-foreground-muted": "#5c6675",
        "color-foreground-border": "#77808c",
        "color-brand-primary": "#1a2330",
        "color-brand-content": "#1a5a9e",
        "color-brand-visited": "#6b3f8f",
        "color-inline-code-background": "#f1ede4",
        "color-code-background": "#f7f4ed",
        "color-sidebar-background": "#f6f3ec",
        "color-pictures": "#b34700",
        "color-pictures-soft": "#fdeadb",
        "color-language": "#1b4f86",
        "color-language-soft": "#e6eef7",
        "color-accent": "var(--track)",
        "color-accent-soft": "var(--track-soft)",
        "color-blue-soft": "var(--track-soft)",
        "color-wrong": "#a8231c",
        "color-highlight-on-target": "transparent",
        "color-edge": "#1a233033",
        "color-api-name": "var(--color-brand-content)",
        "color-api-pre-name": "var(--color-foreground-secondary)",
    },
    "dark_css_variables": {
        "color-background-primary": "#10151c",
        "color-background-secondary": "#161d27",
        "color-background-hover": "#222c3a",
        "color-background-hover--transparent": "#222c3a00",
        "color-background-border": "#2a3544",
        "color-foreground-primary": "#dde5ee",
        "color-foreground-secondary": "#b0bccb",
        "color-foreground-muted": "#9aa8b9",
        "color-foreground-border": "#7f8c9d",
        "color-brand-primary": "#dde5ee",
        "color-brand-content": "#8fc1ec",
        "color-brand-visited": "#c3a3e6",
        "color-inline-code-background": "#1c2532",
        "color-code-background": "#171f2a",
        "color-sidebar-background": "#141a23",
        "color-pictures": "#ff9b57",
        "color-pictures-soft": "#3a2618",
        "color-language": "#9cc9f0",
        "color-language-soft": "#1c2c40",
        "color-wrong": "#ff8f86",
        "color-highlight-on-target": "transparent",
        "color-edge": "#000000aa",
    },
}
