"""The page of a report in a browser, Chromium: wide, on a phone, dark, and on paper.

page_test.py runs these tests. Where POLYRING_MUST_RUN names `browser`, its absence is a failure.
"""

import pathlib
import re
import sys
import unittest

import browser

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "scripts"))

import must_run

EXAMPLES = None  # page_test.py sets them
PAPER = 694  # pixels: A4 within the margins of the page's style
BEYOND = """[...document.querySelectorAll('main *')].filter(e => e.tagName !== 'svg' && !e.closest('svg') && !e.closest('.scroll, .drawing') &&
            e.getBoundingClientRect().right > innerWidth + 1).map(e => e.outerHTML.slice(0, 200))"""
CUT = "[...document.querySelectorAll('.scroll, .drawing')].filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.outerHTML.slice(0, 200))"
UNNAMED = """[...document.querySelectorAll('svg, img')].filter(e => getComputedStyle(e.parentElement).display !== 'none' &&
             !(e.getAttribute('aria-label') || e.alt)).length"""
SMALLEST = """Math.min(...[...document.querySelectorAll('svg text')].filter(e => e.getBoundingClientRect().height > 0)
              .map(e => parseFloat(getComputedStyle(e).fontSize) * Math.hypot(e.getScreenCTM().c, e.getScreenCTM().d)))"""
TALL = "[...document.querySelectorAll('.drawing.SHOWN')].every(e => e.getBoundingClientRect().height > 50)"


class BrowserTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        program = browser.find()
        if not program:
            must_run.skip("browser", "no Chromium here; install it with scripts/setup --browser")
        cls.pages = {"examples": EXAMPLES.all_kinds, "64 hosts": EXAMPLES.large, "hostile": EXAMPLES.hostile,
                     "published": EXAMPLES.published}
        cls.browser = browser.Browser(program)
        cls.addClassCleanup(cls.browser.__exit__)

    def in_each(self, look, check):
        """Opens each page in turn, and checks it; nothing was said, and nothing else was asked for."""
        for name, folder in self.pages.items():
            self.page = name
            with self.subTest(page=name, **look):
                self.browser.messages.clear()
                self.browser.requests.clear()
                self.browser.window(**look)
                self.browser.open(folder / "index.html")
                check()
                self.assertEqual(self.browser.messages, [])
                asked = [address for address in self.browser.requests if not address.startswith("data:")]
                self.assertEqual(asked, [(folder / "index.html").resolve().as_uri()])

    def says(self, script, expected):
        self.assertEqual(self.browser.evaluate(script), expected)

    def on_screen(self, width, shown):
        self.says("document.documentElement.scrollWidth", width)
        self.says(BEYOND, [])
        self.says(UNNAMED, 0)
        self.says(TALL.replace("SHOWN", shown), True)
        self.says("[...document.querySelectorAll('.drawing:not(.only)')].every(e => e.scrollWidth <= e.clientWidth + 1)", True)
        self.assertGreater(self.browser.evaluate(SMALLEST), 4.5)
        self.says("document.title.startsWith(document.querySelector('h1').textContent + ': ')", True)
        self.assertLess(self.browser.evaluate("document.querySelector('.verdict').getBoundingClientRect().top"), 200)
        self.assertEqual(self.browser.screenshot()[:4], b"\x89PNG")

    def test_wide(self):
        self.in_each({"width": 1280}, lambda: self.on_screen(1280, "wide"))

    def test_on_a_phone(self):
        self.in_each({"width": 390}, lambda: self.on_screen(390, "narrow"))

    def test_dark_and_light(self):
        for dark, ink, paper in ((False, "rgb(31, 41, 51)", "rgb(255, 255, 255)"), (True, "rgb(228, 233, 238)", "rgb(23, 28, 34)")):
            self.browser.window(1280, dark=dark)
            self.browser.open(self.pages["examples"] / "index.html")
            self.says("getComputedStyle(document.querySelector('svg text')).fill", ink)
            self.says("getComputedStyle(document.body).backgroundColor", paper)

    def on_paper(self):
        self.says(CUT, [])
        self.says(BEYOND, [])
        self.says("getComputedStyle(document.body).backgroundColor", "rgb(255, 255, 255)")
        self.browser.window(1280)
        pdf = self.browser.pdf()
        self.assertEqual(pdf[:5], b"%PDF-")
        self.assertIn(len(re.findall(rb"/Type /Page\b", pdf)), range(2 if self.page == "published" else 5, 41))

    def test_on_paper(self):
        self.in_each({"width": PAPER, "media": "print", "dark": True}, self.on_paper)

    def test_nothing_hostile_was_run(self):
        self.browser.window(1280)
        self.browser.open(self.pages["hostile"] / "index.html")
        title = self.browser.evaluate("document.title")
        self.assertTrue(title.startswith("<script>document.title='owned'</script>"), title)
        self.assertTrue(title.endswith(": FAIL"), title)
        self.assertEqual(self.browser.evaluate("document.scripts.length + document.images.length"), 0)

