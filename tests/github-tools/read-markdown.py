"""Prints Markdown on standard input as HTML, by GitHub's own parser, raw HTML kept."""

import sys

import cmarkgfm
from cmarkgfm.cmark import Options

text = sys.stdin.read()
print(cmarkgfm.github_flavored_markdown_to_html(text, options=Options.CMARK_OPT_UNSAFE))
