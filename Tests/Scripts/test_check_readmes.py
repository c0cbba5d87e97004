"""test_check_readmes.py -- Scripts/check-readmes finds a README that is too long, and a translation that has drifted."""

from __future__ import annotations

import importlib.util
import sys
import unittest
from importlib.machinery import SourceFileLoader
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "Scripts/check-readmes"
sys.dont_write_bytecode = True
_spec = importlib.util.spec_from_loader("check_readmes", SourceFileLoader("check_readmes", str(SCRIPT)))
check_readmes = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(check_readmes)

ENGLISH = "# A\n[zh](README.zh-CN.md)\n## B\n```toml\nkey = 1   # one\n# two\n```\n```\n$ run '#1'\n```\n"
CHINESE = "# 甲\n[en](README.md)\n## 乙\n```toml\nkey = 1   # 一\n# 二\n```\n```\n$ run '#1'\n```\n"


class ReadmeTests(unittest.TestCase):
  """Two texts of which one is the other's translation."""

  def refuses(self, expected: str, english: str = ENGLISH, chinese: str = CHINESE) -> None:
    """There is one mistake, and this is how it begins."""
    found = check_readmes.mistakes(english, chinese)
    self.assertEqual(len(found), 1, found)
    self.assertTrue(found[0].startswith(expected), found)

  def test_comments_may_be_translated(self) -> None:
    self.assertEqual(check_readmes.mistakes(ENGLISH, CHINESE), [])

  def test_headings(self) -> None:
    self.refuses("README.zh-CN.md:3: a heading of level 3", chinese=CHINESE.replace("## 乙", "### 乙"))
    self.refuses("README.zh-CN.md:1: 3 headings", chinese=CHINESE + "## 丙\n")
    self.refuses("README.zh-CN.md:1: 2 headings", english=ENGLISH + "## C\n")

  def test_code(self) -> None:
    self.refuses("README.zh-CN.md:5: ", chinese=CHINESE.replace("key = 1", "key = 2"))
    self.refuses("README.zh-CN.md:4: ", chinese=CHINESE.replace("toml", "json"))
    self.refuses("README.zh-CN.md:9: ", chinese=CHINESE.replace("#1", "#2"))
    self.refuses("README.zh-CN.md:10: ", chinese=CHINESE.replace("'\n", "'\nmore\n"))
    self.refuses("README.zh-CN.md:1: 1 code blocks", chinese=CHINESE.replace("```\n$ run '#1'\n```\n", ""))

  def test_length_and_links(self) -> None:
    self.refuses("README.md:201: ", english=ENGLISH + "\n" * 200)
    self.refuses("README.md:1: the first lines", english=ENGLISH.replace("README.zh-CN.md", "docs"))
    self.refuses("README.zh-CN.md:1: the first lines", chinese=CHINESE.replace("README.md", "docs"))


if __name__ == "__main__":
  unittest.main()
