"""completions.py -- what a shell offers behind a beginning of a command line, by the package's completion file."""

import subprocess

# What bash does on TAB: the line in its variables, then the function with the command, the word and the one before.
BASH = """
source "$1"; shift
function=$(complete -p httpdnsd | sed 's/.* -F \\([^ ]*\\).*/\\1/')
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMP_POINT=${#COMP_LINE} COMP_TYPE=9 COMP_KEY=9 COMPREPLY=()
"$function" httpdnsd "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""
FISH = "source $argv[1]; complete --do-complete \"$argv[2..]\""


def offered_by_bash(run, file: str, *words: str) -> set[str]:
  """What bash offers for the last word, which may be empty; `run` runs a program where the file is."""
  return lines(run("bash", "--norc", "-c", BASH, "bash", file, *words))


def offered_by_fish(run, file: str, *words: str) -> set[str]:
  """What fish offers for the last word, without the descriptions."""
  return {line.split("\t")[0] for line in lines(run("fish", "--no-config", "-c", FISH, file, *words))}


def lines(done: subprocess.CompletedProcess) -> set[str]:
  """The lines that a shell has printed, which must not have complained."""
  if done.returncode != 0 or done.stderr:
    return {f"{done.args[0]}: exit code {done.returncode}: {done.stderr}"}
  return set(done.stdout.split("\n")) - {""}


def subcommands(tree: dict) -> set[str]:
  """The names of the commands below one, as --experimental-dump-help has them."""
  return {entry["commandName"] for entry in tree.get("subcommands", [])} - {"help"}


def path_options(tree: dict, *above: str) -> list[tuple[str, ...]]:
  """Each option that takes the path of something, behind the words that lead to its command."""
  words = (*above, tree["commandName"])
  found = [(*words, f"--{option['preferredName']['name']}") for option in tree.get("arguments", [])
           if option["kind"] == "option" and option["valueName"] in {"file", "folder", "path"}]
  return found + [option for entry in tree.get("subcommands", []) for option in path_options(entry, *words)]
