#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_docs.py SOURCE [DOXYGEN DOXYFILE]: the pictures of the documentation, its links, the programs that it quotes, and
the API reference, where Doxygen is there to make it.
"""
import glob
import os
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

SOURCE = sys.argv[1]
DOXYGEN = sys.argv[2:4]
SVG = "{http://www.w3.org/2000/svg}"
# Matplotlib draws labels as outlines: a comment with the text, and a group at the beginning of its base line.
OUTLINES = re.compile(r'<!-- (.*?) -->\s*<g [^>]*transform="translate\((\S+) (\S+)\)(?: rotate\((\S+)\))? scale\((\S+) ')


def pages():
    return [os.path.join(SOURCE, "README.md"), *sorted(glob.glob(os.path.join(SOURCE, "docs", "*.md")))]


def text_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def is_a_programs(picture):
    """Whether it is an example's, in pixels; else it is plot.py's."""
    return "Matplotlib" not in text_of(picture)


def outlined_labels(picture):
    """(text, left, right, top, bottom), roughly: a letter is 0.3 to 0.7 times as wide as the font is high."""
    for label, x, y, angle, scale in OUTLINES.findall(text_of(picture)):
        x, y, height = float(x), float(y), 100 * float(scale)
        width = 0.3 * height * len(re.sub(r"\$|\\mathdefault|[{}^]", "", label))
        if angle:
            yield label, x - 0.7 * height, x, y - width, y
        else:
            yield label, x, x + width, y - 0.7 * height, y


def written_labels(root):
    for text in root.iter(SVG + "text"):
        x, y, height = (float(text.get(name)) for name in ("x", "y", "font-size"))
        width = 0.45 * height * len(text.text or "")
        left = x - width * {"middle": 0.5, "end": 1}.get(text.get("text-anchor"), 0)
        if not text.get("transform"):
            yield text.text, left, left + width, y - 0.7 * height, y


class Pictures(unittest.TestCase):
    def test_labels_are_inside(self):
        pictures = glob.glob(os.path.join(SOURCE, "docs", "img", "*.svg"))
        self.assertGreater(len(pictures), 5)
        for picture in sorted(pictures):
            root = ElementTree.parse(picture).getroot()
            _, _, width, height = map(float, root.get("viewBox").split())
            found = list(written_labels(root) if is_a_programs(picture) else outlined_labels(picture))
            self.assertGreater(len(found), 3, picture)
            for label, left, right, top, bottom in found:
                with self.subTest(picture=os.path.basename(picture), label=label):
                    self.assertGreaterEqual(left, 0)
                    self.assertGreaterEqual(top, 0)
                    self.assertLessEqual(right, width)
                    self.assertLessEqual(bottom, height)

    def test_all_are_shown(self):
        shown = set()
        for page in pages():
            for name in re.findall(r"!\[[^]]*\]\(([^)]*)\)", text_of(page)):
                self.assertTrue(os.path.exists(os.path.join(os.path.dirname(page), name)), f"{page}: {name}")
                shown.add(os.path.basename(name))
        self.assertEqual(sorted(shown), sorted(os.listdir(os.path.join(SOURCE, "docs", "img"))))


def headings(page):
    """What a link can name of a page: its headings as GitHub and GitLab spell them in an address."""
    text = re.sub(r"^```.*?^```", "", text_of(page), flags=re.M | re.S)
    for heading in re.findall(r"^#+ (.*)$", text, flags=re.M):
        words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        yield re.sub(r"[^\w\- ]", "", words).replace(" ", "-")


class Links(unittest.TestCase):
    def test_lead_somewhere(self):
        folders = ["", "docs", "docs/decisions", "adapters", "bench/results", "fortran", "packaging", "tuning"]
        links = 0
        for page in [page for folder in folders for page in glob.glob(os.path.join(SOURCE, folder, "*.md"))]:
            text = re.sub(r"^ *```.*?^ *```", "", text_of(page), flags=re.M | re.S)
            for link in re.findall(r"\]\(([^)\s]*)\)", text):
                if re.match("[a-z]+:", link):
                    continue
                links += 1
                name, _, heading = link.partition("#")
                target = os.path.normpath(os.path.join(os.path.dirname(page), name)) if name else page
                with self.subTest(page=page, link=link):
                    self.assertTrue(os.path.exists(target))
                    self.assertTrue(not heading or heading in headings(target))
        self.assertGreater(links, 50)


class Programs(unittest.TestCase):
    def test_quoted_as_they_are(self):
        for page, program, language in (("README.md", "quickstart.c", "c"), ("docs/guide.md", "rebuild.c", "c"),
                                        ("fortran/README.md", "quickstart.f90", "fortran")):
            code = text_of(os.path.join(SOURCE, "examples", program)).split("\n", 1)[1]
            self.assertIn(f"```{language}\n{code}```\n", text_of(os.path.join(SOURCE, page)), program)


@unittest.skipUnless(DOXYGEN, "no Doxygen")
class Reference(unittest.TestCase):
    def test_pictures_and_links(self):
        doxygen, doxyfile = DOXYGEN
        with tempfile.TemporaryDirectory() as folder:
            settings = f"{text_of(doxyfile)}\nOUTPUT_DIRECTORY = {folder}\n"
            done = subprocess.run([doxygen, "-"], input=settings, text=True, capture_output=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            html = os.path.join(folder, "html")
            shown = set()
            for page in glob.glob(os.path.join(html, "*.html")):
                text = text_of(page)
                self.assertNotIn('href="file:', text, page)
                for name in re.findall(r'<(?:img[^>]* src|object[^>]* data)="([^"]*)"', text):
                    self.assertTrue(os.path.exists(os.path.join(html, name)), f"{page}: {name}")
                    shown.add(name)
            self.assertLessEqual(set(os.listdir(os.path.join(SOURCE, "docs", "img"))), shown)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
