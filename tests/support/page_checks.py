"""What a page must have so that everybody can use it: checks of our reports in a browser.

    self.assertEqual(page_checks.findings(browser), [])

Contrast of text (4.5, or 3 where it is large), names of controls, headings without gaps, unique
ids, header cells, an order of focus that follows the page from top to bottom, and an outline of
what has the focus.
"""

import os

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "page_checks.js"),
          encoding="utf-8") as script:
    SCRIPT = script.read()

OUTLINED = """
const el = document.activeElement;
if (!el || el === document.body) return "nothing";
const boxes = [el, ...el.querySelectorAll("*")].map(n => getComputedStyle(n));
const shown = boxes.some(s => (s.outlineStyle !== "none" && parseFloat(s.outlineWidth) > 0) ||
                              s.boxShadow !== "none");
return (el.id ? "#" + el.id : el.tagName + " " + el.textContent.slice(0, 30)) + (shown ? "" : "!");
"""


def findings(browser, stops=12):
    """What is wrong with the page that is open; `stops`: how many are reached with Tab."""
    found = browser.run(SCRIPT)
    for _ in range(stops):
        browser.press("Tab")
        at = browser.run(OUTLINED)
        if at == "nothing":
            break
        if at.endswith("!"):
            found.append("no outline: " + at[:-1])
    return found
