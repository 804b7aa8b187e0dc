"""``mam.1``, made from the parsers: ``python -m mam_core.cli.manpage`` prints it.

The wheel carries it (see ``.ci/build_hook.py``); no copy of it is kept in the repository.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator

from mam_core.cli.main import VERBS, load, parser_of
from mam_core.cli.parser import Parser
from mam_core.version import __version__

_HEAD = r"""
.SH NAME
mam \- run many coding agents at once, and lose none of them
.SH SYNOPSIS
.B mam
[\fIoptions of the console\fR]
.br
.B mam
[\fIoptions of every verb\fR] \fIVERB\fR \&...
.br
.B mam help
[\fIVERB\fR | \fITOPIC\fR]
.SH DESCRIPTION
A job is a contract on disk: the prompt, the agent, where it runs, how long it may take and what it
must leave behind. Agents claim jobs and run them in tmux sessions, and every step is in the audit
log.
.B mam
alone opens the console, which shows all of it live; whatever the console can do, a verb can do.
.PP
Ids and data go to standard output, everything for people to standard error.
.B mam help topics
lists the pages of the manual.
"""

_TAIL = r"""
.SH EXIT STATUS
0 done; 1 refused or not found; 2 wrong usage; 3 nothing to pick. Of
.BR watch ", " wait " and " submit :
0 all completed; 1 one of them not; 2 not in time.
.SH ENVIRONMENT
.TP
.B MAM_REGISTRY_DIR, MAM_STORE, MAM_CONFIG
what
.BR \-\-registry\-dir ", " \-\-store " and " \-\-config
say, where they are not given.
.TP
.B DELEGATE_JOB_LOGS_DIR
the folder of the audit log.
.TP
.B MQTT_BROKER, MQTT_PORT, MQTT_TLS, MQTT_USERNAME, MQTT_PASSWORD
another broker than the registry's own.
.TP
.B NO_COLOR, PAGER
as everywhere.
.SH FILES
.TP
.I .mam/jobs
the registry of this folder.
.TP
.I .mam/delegate_job_logs
its audit log.
.TP
.I mam.toml, ~/.config/mam/mam.toml
the settings, of the project and of the person.
.SH SEE ALSO
.BR tmux (1)
"""


def man_page() -> str:
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield f'.TH MAM 1 "" "mam {__version__}" "User Commands"'
    yield _HEAD.strip()
    yield ".SH OPTIONS OF THE CONSOLE"
    yield from _options(_parser("console"))
    yield ".SH OPTIONS OF EVERY VERB"
    yield from _options(Parser("mam", ""))
    yield ".SH VERBS"
    for verb in VERBS:
        yield from _verb(verb)
    yield _TAIL.strip()


def _verb(verb: str) -> Iterator[str]:
    parser = _parser(verb)
    yield f".SS {_words(verb)}"
    yield _words(_sentence(VERBS[verb][1]))
    yield from _options(parser)
    if parser.epilog:
        yield ".PP"
        yield _words(parser.epilog)


def _parser(verb: str) -> Parser:
    module = load(verb)
    if module is None:
        raise LookupError(verb)
    return parser_of(verb, module)


def _options(parser: Parser) -> Iterator[str]:
    """Those of every verb stand in a part of their own."""
    everywhere = {} if not parser.description else Parser("", "")._option_string_actions
    for action in parser._actions:
        names = action.option_strings
        if "--help" not in names and not (names and names[0] in everywhere):
            yield ".TP"
            yield _naming(action)
            yield _words(_meaning(parser, action))


def _naming(action: argparse.Action) -> str:
    value = ""
    if action.nargs != 0:
        value = rf"\fI{_words(str(action.metavar or action.dest.upper()))}\fR"
    if not action.option_strings:
        return value
    names = ", ".join(rf"\fB{_words(name)}\fR" for name in action.option_strings)
    return f"{names} {value}".rstrip()


def _meaning(parser: Parser, action: argparse.Action) -> str:
    return _sentence((action.help or "") % {"default": action.default, "prog": parser.prog})


def _sentence(words: str) -> str:
    return words if words.endswith(".") or not words else f"{words}."


def _words(text: str) -> str:
    """As the formatter shows it letter by letter, whatever the text begins with."""
    escaped = text.replace("\\", r"\e").replace("-", r"\-")
    escaped = re.sub(r"[^\x00-\x7f]", lambda sign: rf"\[u{ord(sign[0]):04X}]", escaped)
    lines = [line.strip() for line in escaped.splitlines() if line.strip()]
    return "\n.br\n".join(re.sub(r"^([.'])", r"\\&\1", line) for line in lines)


if __name__ == "__main__":
    sys.stdout.write(man_page())
