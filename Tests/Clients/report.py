"""report.py -- the lines that the checks print, and programs that are run with a time limit."""

import os
import re
import subprocess
import time
from dataclasses import dataclass

# The longest that one call of a client may take, in seconds.
CALL_LIMIT = 20
# Characters of a program's output in a line about a failure.
SHOWN = 400

_failed: list[str] = []


def expect(name: str, expected, got) -> bool:
  """Prints whether a value is the expected one; whether it is."""
  return _print_line(name, got == expected, expected, got)


def expect_match(name: str, pattern: str, text: str) -> bool:
  """Prints whether a text contains a pattern, which `.` lets go on in the next line; whether it does."""
  return _print_line(name, re.search(pattern, text, re.DOTALL), f"/{pattern}/", text)


def expect_soon(name: str, expected, value, seconds: float = 10) -> bool:
  """Like `expect`, but asks `value` again until it is so, for some time."""
  return expect(name, expected, _last(value, lambda got: got == expected, seconds))


def expect_match_soon(name: str, pattern: str, text, seconds: float = 10) -> bool:
  """Like `expect_match`, but asks `text` again until it is so, for some time."""
  return expect_match(name, pattern, _last(text, lambda got: re.search(pattern, got, re.DOTALL), seconds))


def _last(value, is_so, seconds: float):
  deadline = time.monotonic() + seconds
  while not is_so(got := value()) and time.monotonic() < deadline:
    time.sleep(0.1)
  return got


def _print_line(name: str, is_so, expected, got) -> bool:
  if is_so:
    print(f"ok {name}", flush=True)
    return True
  _failed.append(name)
  print(f"FAIL {name}: expected {_one_line(expected)}, got {_one_line(got)}", flush=True)
  return False


def _one_line(value) -> str:
  """The begin and the end of a text: there programs say what went wrong."""
  text = " ".join(str(value).split()) or "nothing"
  return text if len(text) <= SHOWN else f"{text[:SHOWN // 2]} … {text[-SHOWN // 2:]}"


def failed() -> list[str]:
  """The names of the checks that have failed."""
  return list(_failed)


@dataclass(frozen=True)
class Output:
  """What a program printed, on both outputs, and its exit status; 124 if it was ended at its limit."""
  status: int
  text: str


def call(*command, seconds: int = CALL_LIMIT, more: dict[str, str] | None = None) -> Output:
  """Runs a program with `more` in its environment."""
  done = subprocess.run(["timeout", "--kill-after=5", str(seconds), *(str(part) for part in command)], check=False,
                        stdin=subprocess.DEVNULL, env={**os.environ, **(more or {})}, stdout=subprocess.PIPE,
                        stderr=subprocess.STDOUT, text=True, errors="replace")
  return Output(done.returncode, done.stdout)
