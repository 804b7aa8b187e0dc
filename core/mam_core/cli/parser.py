"""How words of a command line become arguments: one parser a verb, one sentence an error."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from mam_core.cli.terminal import terminal_width
from mam_core.cli.usage import UsageError
from mam_core.errors import InvalidField

# argparse looks for a translation of its own words whenever it says one; there is none of ours to
# go with it, and the search is 5 ms of every start.
argparse._ = str  # type: ignore[attr-defined]  # private, and the only way to spare it


class _Help(argparse.HelpFormatter):
    """The terminal is measured once; argparse would import `shutil` to do it for every option."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=terminal_width() - 2)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        """A text with lines of its own keeps them: it holds an example."""
        return text if "\n" in text else super()._fill_text(text, width, indent)


class Parser(argparse.ArgumentParser):
    """An argparse parser that raises `UsageError` instead of printing and leaving.

    A value's name in the help (``ID``, ``LABEL``, ``STATUS`` …) is also what the
    shells complete it with.
    """

    def __init__(self, prog: str, description: str) -> None:
        # No abbreviations: a new option must never change what an old script means.
        super().__init__(
            prog=prog, description=description, allow_abbrev=False, formatter_class=_Help
        )
        everywhere = self.add_argument_group("options of every verb")
        everywhere.add_argument("--registry-dir", metavar="DIR", help="the folder of the records")
        everywhere.add_argument(
            "--store", metavar="URL", help="files, sqlite:PATH or postgresql://…"
        )
        everywhere.add_argument("--config", metavar="FILE", help="the settings")
        everywhere.add_argument(
            "--allow-network-fs",
            action="store_true",
            help="use a registry on a network file system, at your own risk",
        )

    def read(self, words: Sequence[str]) -> argparse.Namespace:
        """The arguments in `words`, with options and ids in any order.

        Where no id stands, we are spared what argparse does for that order: it writes the usage
        anew.
        """
        if any(action.option_strings == [] for action in self._actions) and self._has_ids(words):
            return self.parse_intermixed_args(words)
        return self.parse_args(words)

    def _has_ids(self, words: Sequence[str]) -> bool:
        """A word stands alone, that is: it is no option and no option's only value."""
        rest = iter(words)
        for word in rest:
            action = self._option_string_actions.get(word.partition("=")[0])
            if action is None:
                return True  # or it is a mistake, and will be told as one
            if action.nargs is None and "=" not in word:
                next(rest, None)
            elif action.nargs not in (None, 0):
                return True
        return False

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see `{self.prog} --help`)")


def one_job_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("ids", nargs="*", metavar="ID", help="the job")
    parser.add_argument(
        "--job", action="append", default=[], metavar="ID", help="the same, by name"
    )


def many_jobs_option(parser: argparse.ArgumentParser, *, optional: bool = False) -> None:
    words = "the jobs (default: all that fit)" if optional else "the jobs"
    parser.add_argument("ids", nargs="*", metavar="ID", help=words)
    parser.add_argument(
        "--job", action="append", default=[], metavar="ID", help="the same, by name"
    )


def one_job(args: argparse.Namespace) -> str:
    ids = many_jobs(args)
    if len(ids) > 1:
        raise UsageError("only one job at a time can be named here")
    return ids[0]


def many_jobs(args: argparse.Namespace, *, optional: bool = False) -> list[str]:
    """The jobs that were named, each once."""
    ids = list(dict.fromkeys([*args.ids, *args.job]))
    if not ids and not optional:
        raise UsageError("name a job: ID or --job ID")
    return ids


def json_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print data for programs")


def words(values: Sequence[str]) -> list[str]:
    """The words of an option that may be repeated and may name several, with commas between."""
    return [word for value in values for word in value.split(",") if word]


def seconds(text: str) -> float:
    """``600``, ``90s``, ``10m``, ``2h`` or ``1d``; whole numbers stay whole in the record."""
    from mam_core.fields import parse_duration

    number = _explained(parse_duration, text)
    return int(number) if number == int(number) else float(number)


def size(text: str) -> int:
    from mam_core.fields import parse_size

    return int(_explained(parse_size, text))


def _explained(parse: Callable[[str], Any], text: str) -> Any:
    """argparse shows the sentence of an `ArgumentTypeError` and hides that of any other."""
    try:
        return parse(text)
    except (ValueError, InvalidField) as problem:
        raise argparse.ArgumentTypeError(str(problem)) from None


def label_option(parser: argparse.ArgumentParser, meaning: str) -> None:
    """The label that a verb cannot do without."""
    parser.add_argument("--agent-session", "--label", required=True, metavar="LABEL", help=meaning)
