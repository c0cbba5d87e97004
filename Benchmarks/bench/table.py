"""table.py -- what every part of the report is made of: requirements with a verdict, and tables in Markdown."""

from __future__ import annotations

from dataclasses import dataclass

NOT_MEASURED = "–"


@dataclass(frozen=True)
class Row:
  """One requirement."""

  figure: str
  limit: str
  measured: str = NOT_MEASURED
  verdict: str = "not measured"


def verdict(is_met: bool) -> str:
  """Whether a requirement is met, in a word."""
  return "met" if is_met else "**missed**"


def table(header: list[str], rows: list[list[str]]) -> str:
  """A Markdown table whose columns are also aligned as plain text."""
  widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]

  def line(cells: list[str]) -> str:
    return "| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths)) + " |"

  return "\n".join([line(header), "|" + "|".join("-" * (width + 2) for width in widths) + "|", *map(line, rows)])
