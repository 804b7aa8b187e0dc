"""The ``:`` line on the board: what the commands with a word do there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mam_tui.actions import ACTIONS
from mam_tui.columns import COLUMNS
from mam_tui.commands import AUTOMATIC, Command
from mam_tui.filters import BadFilter, parse
from mam_tui.model import Order

if TYPE_CHECKING:
    from mam_tui.screens.board import BoardScreen


def obey(board: BoardScreen, command: Command) -> None:
    """What belongs to no board is the console's."""
    name, word = command
    if name == "filter":
        _narrow(board, word)
    elif name == "sort" and word:
        _sort(board, word)
    elif name == "columns" and word:
        _choose_columns(board, word)
    elif name == "job":
        _go_to(board, word)
    elif name == "bulk" and word and board.lacks(name) is None:
        board.console.jobs.bulk(word)
    elif name == "report" and word and board.lacks(name) is None:
        board.console.jobs.report(board.desk.board.chosen(), word)
    elif name in ACTIONS and not (word and name == "screenshot"):
        board.action_act(name)
    else:
        board.console.everywhere.obey(command)


def _narrow(board: BoardScreen, text: str) -> None:
    try:
        board.narrow(parse(text))
    except BadFilter as problem:
        _refuse(board, problem.message)


def _sort(board: BoardScreen, word: str) -> None:
    name = word.removeprefix("-")
    if name in COLUMNS:
        board.sort(Order(name, word.startswith("-")))
    else:
        _refuse(board, f"there is no column {name}: {', '.join(COLUMNS)}")


def _choose_columns(board: BoardScreen, word: str) -> None:
    names = [] if word == AUTOMATIC else word.replace(",", " ").split()
    if unknown := [name for name in names if name not in COLUMNS]:
        _refuse(board, f"there is no column {unknown[0]}: {', '.join(COLUMNS)}")
        return
    board.choose_columns(names)


def _go_to(board: BoardScreen, job_id: str) -> None:
    if not board.table.go_to_job(job_id):
        known = job_id in board.desk.board.rows
        _refuse(board, f"job {job_id} is {'hidden by the filter' if known else 'not here'}")


def _refuse(board: BoardScreen, sentence: str) -> None:
    board.notify(sentence, severity="warning", markup=False)
