"""Errors that a scenario, a folder or the user's code can cause; each is one sentence."""

import unicodedata

COMMAND_LINE = "command line"  # place of what was given there, as file:line is that of a file
SHOWN_PATH = 80  # letters
TURNS_TEXT = frozenset(("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"))  # UAX 9
RELATIVE = "a path is relative to the scenario"  # also one on the command line


class EdgesimError(Exception):
    """Base of all errors of this package."""


class ScenarioError(EdgesimError):
    """Bad input: one sentence with the place, what was given, what is allowed; exit code 2."""


class RunError(EdgesimError):
    """The scenario asks for something that is not there or does not fit; exit code 2."""


class ResultsError(EdgesimError):
    """Results that cannot be read, reported or compared, in one sentence."""


class InfeasibleScenarioError(EdgesimError):
    """No device can meet the latency threshold; says the least that would do; exit code 3."""


class ScenarioKeyError(EdgesimError):
    """A value of a scenario cannot be used; `edgesim.runs.error_sentences` adds file and line.

    Args:
        key: path of the key, such as ("allocation", "solver").
        problem: the rest of the sentence that begins with the key, such as "is -1; ...".
    """

    def __init__(self, key: tuple[str | int, ...], problem: str) -> None:
        super().__init__(key, problem)  # SimPy makes errors of processes again from their arguments
        self.key, self.problem = key, problem

    def __str__(self) -> str:
        return f"{'.'.join(map(str, self.key))} {self.problem}"


def one_line(text: object) -> str:
    """A text without line breaks, indentation and double spaces."""
    return " ".join(str(text).split())


def visible(text: str) -> str:
    """A text whose control characters are escaped: terminals obey them.

    Line breaks and tabs stay, and letters that nobody sees, such as the joiner of an emoji, but not
    the marks that turn the direction of a text.
    """
    hidden = {
        char
        for char in text
        if unicodedata.category(char) == "Cc" or unicodedata.bidirectional(char) in TURNS_TEXT
    }
    for char in hidden - {"\n", "\t"}:
        text = text.replace(char, char.encode("unicode_escape").decode())
    return text


def counted(n: int, noun: str) -> str:
    """1 round, 2 rounds."""
    return f"{n} {noun}{'s' * (n != 1)}"


def shorten_path(path: object) -> str:
    """A path as the sentence of an error shows it."""
    text = str(path)
    return text if len(text) <= SHOWN_PATH else f"{text[:SHOWN_PATH]}..."


def shorten(given: object) -> str:
    """A value as the sentence of an error shows it."""
    if given is None:
        return "empty"
    if isinstance(given, bool):
        return str(given).lower()
    if isinstance(given, dict):
        return "a mapping"
    if isinstance(given, list | tuple):
        return "a list"
    if isinstance(given, str):
        text = one_line(given)
        return f'"{text[:40]}..."' if len(text) > 43 else f'"{text}"'
    text = str(given)
    return text if len(text) <= 25 else f"{text[:20]}..."
