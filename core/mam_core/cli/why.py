"""``mam why``: why a job is not claimed, or why it is shown as it is, now and before."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import closing

from mam_core.cli.context import Context
from mam_core.cli.parser import json_option, one_job, one_job_option
from mam_core.cli.terminal import put, put_json, table_width
from mam_core.operations.evidence import services_of
from mam_core.operations.past import Change
from mam_core.operations.seen import Elsewhere, explained
from mam_core.safe_text import safe
from mam_core.table import Column, render
from mam_core.tmux.facts import PaneFact


def options(parser: argparse.ArgumentParser) -> None:
    one_job_option(parser)
    parser.add_argument(
        "--history", action="store_true", help="each change of its state, with who said so"
    )
    json_option(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    registry, path, settings = context.registry, context.registry_path, context.settings

    def panes() -> Sequence[PaneFact]:
        from mam_core.wiring import open_tmux

        return open_tmux(path, settings).panes()

    job_id = one_job(args)
    registry.notice_all([job_id])
    with closing(Elsewhere(path, settings)) as others:
        explanation = explained(
            *(registry, others, job_id, path),
            panes=panes,
            with_history=args.history,
            services=services_of(registry, path, settings),
        )
    if args.json:
        put_json(explanation.to_dict())
        return 0
    put(map(safe, explanation.sentences))
    if explanation.history is not None:
        put(_table(explanation.history))
    return 0


def _table(history: Sequence[Change]) -> Iterator[str]:
    rows = [
        (it.at, str(it.attempt) if it.attempt else "", it.state, it.channel, it.rule, it.words)
        for it in history
    ]
    columns = zip(*rows, strict=True) if rows else ((),) * 6
    time, attempt, state, channel, rule, words = columns
    return render(
        [
            Column("TIME", time),
            Column("TRY", attempt),
            Column("STATE", state),
            Column("WITNESS", channel),
            Column("RULE", rule, flexible=True, most=40),
            Column("WORDS", words, flexible=True, least=20),
        ],
        table_width(),
    )
