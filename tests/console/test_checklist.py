"""What operators of good consoles rely on, point by point: each has tests, and no act is far away.

The points are those of a study of the consoles that people like. A test that is renamed or gone
is missed here, so that no point loses its proof in silence.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from textual.binding import Binding

from mam_tui.actions import ACTIONS, Action, Place
from mam_tui.actions.past import PAST
from mam_tui.app import Console
from mam_tui.commands import aliases
from mam_tui.screens.attention import AttentionScreen
from mam_tui.screens.board import BoardScreen
from mam_tui.screens.charts import ChartsScreen
from mam_tui.screens.fleet import FleetScreen
from mam_tui.screens.gantt import GanttScreen
from mam_tui.screens.graph import GraphScreen
from mam_tui.screens.groups import GroupsScreen
from mam_tui.screens.history import HistoryScreen
from mam_tui.screens.nodes import NodesScreen
from mam_tui.screens.sessions import SessionsScreen
from mam_tui.screens.view import View

_HERE = Path(__file__).parent

POINTS: dict[str, tuple[str, ...]] = {
    "1 j k g G and half pages everywhere": (
        "test_board_keymap.py::test_every_key_without_an_action_is_known_not_to_be_free",
        "test_checklist.py::test_every_list_moves_alike",
    ),
    "2 enter goes in, esc back, q quits only from the root": (
        "test_console.py::test_every_screen_has_its_keys_on_a_page",
        "e2e/test_looking_around.py::test_others_write_and_the_operator_looks_around",
    ),
    "3 ? has the keys of this view, from its bindings": (
        "test_board_keymap.py::test_it_is_shown_wherever_keys_are",
        "test_console.py::test_every_screen_has_its_keys_on_a_page",
    ),
    "4 : with aliases, completion, history": (
        "test_commands.py::test_an_alias_hides_no_command_and_leads_to_one",
        "test_commands.py::test_completion_offers_commands_and_their_words",
        "test_commands.py::test_history_walks_back_and_forth",
    ),
    "5 / filters while it is typed, esc clears, it is always seen": (
        "test_console.py::test_the_filter_narrows_while_it_is_typed_and_escape_takes_it_back",
        "test_status_line.py::test_the_kinds_of_needs_push_nothing_off",
    ),
    "6 fields, negation, mistakes in place": (
        "test_filters.py::test_what_is_found",
        "test_filters.py::test_a_mistake_is_one_sentence",
    ),
    "7 marks: one, a range, all shown, none; counted": (
        "test_board_comforts.py::test_v_marks_as_the_cursor_goes_and_escape_drops_it",
        "test_console.py::test_marked_jobs_are_acted_on_together",
    ),
    "8 acts are for the marked ones, else for the one at the cursor": (
        "test_console.py::test_marked_jobs_are_acted_on_together",
    ),
    "9 a capital letter or a click sorts, an arrow says so": (
        "test_board_comforts.py::test_a_capital_letter_sorts_and_again_turns_it_round",
        "test_board_comforts.py::test_a_click_on_a_heading_sorts_and_an_arrow_says_so",
    ),
    "10 cursor, marks and scroll stick to ids": (
        "test_model.py::test_the_cursor_stays_on_its_job_when_others_come_before_it",
        "test_board_comforts.py::test_marks_are_of_jobs_and_not_of_lines",
        "test_board_comforts.py::test_the_wheel_scrolls_and_no_change_takes_that_back",
    ),
    "11 the way back finds filter, order and cursor": (
        "test_board_comforts.py::test_from_another_view_too",
        "test_board_comforts.py::test_who_only_looks_at_another_view_finds_the_cursor_where_it_was",
    ),
    "12 where we are, counts, connection and age in the status bar": (
        "test_status_line.py::test_with_room_for_it_everything_is_said",
        "test_status_line.py::test_a_lost_registry_is_said_whatever_else_there_is",
    ),
    "13 a few keys that matter at the bottom": (
        "test_board_comforts.py::test_a_click_on_a_key_is_that_key",
        "test_pictures.py::test_pictures",
    ),
    "14 the palette has every action": ("test_checklist.py::test_the_palette_has_every_action",),
    "15 numbers are views": (
        "test_export.py::test_every_list_can_be_taken_along",
        "test_board_comforts.py::test_minus_goes_to_the_view_before",
    ),
    "16 hold and go on, with the number of what waits": (
        "test_console.py::test_while_the_picture_is_held_nothing_moves_and_all_of_it_comes_after",
        "test_situations_links.py::test_a_held_picture_counts_all_and_shows_the_newest",
    ),
    "17 a tail follows until one scrolls up": (
        "test_detail_panel.py::test_it_follows_until_one_scrolls_up_and_again_from_the_end",
        "test_detail_tabs.py::"
        "test_output_is_followed_until_one_scrolls_up_and_attempts_can_be_chosen",
    ),
    "18 what destroys asks, and another key confirms": (
        "test_console.py::test_cancel_asks_and_only_y_confirms",
        "test_typed_ahead.py::test_a_yes_from_before_the_question_is_none",
    ),
    "19 read-only by flag and by switch; a refusal says why": (
        "test_situations_modes.py::test_every_act_that_changes_something_is_refused_with_a_reason",
        "test_situations_modes.py::test_it_is_switched_by_a_command_and_the_keys_come_back",
    ),
    "20 every act leaves its command line": (
        "test_export.py::test_what_is_shown_becomes_a_table_or_records",
        "e2e/test_ending_jobs.py::test_cancel_and_retry_by_key",
    ),
    "21 results in passing, failures stay; never a traceback": (
        "test_export.py::test_what_is_shown_becomes_a_table_or_records",
        "test_crash.py::test_the_sentence_names_the_file_and_the_file_holds_no_values",
    ),
    "22 a lost broker or folder leaves the table, dated": (
        "test_situations_links.py::test_lost_and_back",
        "test_situations_links.py::test_gone_and_back",
    ),
    "23 id, line, path and command are copied": (
        "test_board_comforts.py::test_of_line_path_and_command",
        "test_console.py::test_what_is_shown_is_exported_and_an_id_is_copied",
    ),
    "24 the mouse works and can be left out": (
        "test_board_comforts.py::test_a_click_selects_and_a_second_one_opens",
        "test_board_comforts.py::test_can_be_left_to_the_terminal",
    ),
    "25 a bad setting names file, line and key": (
        "test_board_keymap.py::test_is_one_sentence_with_its_place",
        "test_board_keymap.py::test_columns_and_colours_that_there_are_not",
    ),
    "26 keys by action": ("test_board_keymap.py::test_the_new_key_acts_and_the_old_one_is_free",),
    "27 themes, light, dark, sixteen colours, none": (
        "test_situations_terminal.py::test_sixteen_colours_and_a_locale_without_utf_8",
        "test_situations_terminal.py::test_no_colour_at_all",
        "test_console.py::test_a_theme_that_is_chosen_anywhere_is_kept",
    ),
    "28 glyph, word and colour; plain signs": (
        "test_situations_terminal.py::test_when_signs_are_plain",
        "test_checklist.py::test_no_two_states_look_alike_without_colour",
    ),
    "29 what is empty says what to do; one hint and a demonstration": (
        "test_situations_modes.py::test_an_empty_filter_says_how_to_get_everything_back",
        "test_console.py::test_a_first_run_gives_one_hint_and_no_key_waits_for_it",
        "test_board_comforts.py::test_one_key_leaves_for_the_demonstration",
    ),
    "30 rows and screen into files; choices are kept": (
        "test_export.py::test_every_list_can_be_taken_along",
        "test_export.py::test_the_screen_becomes_a_picture_on_every_view",
        "test_console.py::test_order_columns_and_theme_are_there_the_next_time",
    ),
}
SCREENS: dict[Place, type[View]] = {
    Place.BOARD: BoardScreen,
    Place.SESSIONS: SessionsScreen,
    Place.FLEET: FleetScreen,
    Place.ATTENTION: AttentionScreen,
    Place.GANTT: GanttScreen,
    Place.CHARTS: ChartsScreen,
    Place.HISTORY: HistoryScreen,
    Place.GRAPH: GraphScreen,
    Place.NODES: NodesScreen,
    Place.GROUPS: GroupsScreen,
}


@cache
def known_in(file: str) -> frozenset[str]:
    tree = ast.parse((_HERE / file).read_text())
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, kinds))


def test_each_of_the_thirty_points_has_its_tests() -> None:
    assert [int(point.split()[0]) for point in POINTS] == list(range(1, 31))
    for point, tests in POINTS.items():
        assert tests, point
        for test in tests:
            file, _, name = test.partition("::")
            assert name in known_in(file), f"{point}: {test} is gone"


def bound(owner: Any) -> dict[str, str]:
    """Keys by the id of what they do."""
    return {one.id: one.key for one in owner.BINDINGS if isinstance(one, Binding) and one.id}


def keys_to(action: Action) -> int:
    """How many keys one presses on the board to have it done: the shortest of all ways."""
    ways = [2 + len(alias) for alias, name in aliases().items() if name == action.name]
    if action.key and action.place is Place.PAST:
        ways.append(2)  # t, and its key
    elif action.key:
        ways.append(1 if action.place in (Place.BOARD, Place.EVERYWHERE) else 2)
    return min(ways, default=99)


@pytest.mark.parametrize("name", ACTIONS)
def test_every_action_is_at_most_three_keys_away(name: str) -> None:
    action = ACTIONS[name]
    assert keys_to(action) <= 3
    screen = Console if action in PAST else SCREENS.get(action.place, BoardScreen)
    assert bound(screen)[name] == (action.key or "unbound")


def test_the_palette_has_every_action() -> None:
    """On the view where it is at home, or on every one."""
    for action in ACTIONS.values():
        if action.place is not Place.PAST:
            assert action.place in SCREENS.get(action.place, BoardScreen).PLACES


def test_every_list_moves_alike() -> None:
    from mam_tui.widgets.fleet_grid import FleetGrid
    from mam_tui.widgets.gantt_chart import GanttChart
    from mam_tui.widgets.line_table import LineTable
    from mam_tui.widgets.moving import MOVING

    moving = {key for one in MOVING if isinstance(one, Binding) for key in one.key.split(",")}
    assert {"j", "k", "up", "down", "ctrl+d", "ctrl+u", "pageup", "pagedown"} <= moving
    for widget in (LineTable, GanttChart, FleetGrid):
        keys = {
            key for one in widget.BINDINGS if isinstance(one, Binding) for key in one.key.split(",")
        }
        assert {"j", "k", "up", "down", "g", "G"} <= keys, widget


def test_no_two_states_look_alike_without_colour() -> None:
    from mam_tui.faces import FACES

    for signs in ([face.glyph for face in FACES.values()], [face.ascii for face in FACES.values()]):
        assert len(signs) == len(set(signs))
