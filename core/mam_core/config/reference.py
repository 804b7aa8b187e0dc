"""The page ``docs/configuration.md``, made from the schema: it cannot say what the reader does not.

``python -m mam_core.config.reference > docs/configuration.md`` writes it anew; a test compares.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from mam_core.config.examples import example_of
from mam_core.config.kinds import Kind, Setting, Table
from mam_core.config.loading import CONFIG_VARIABLE, VARIABLES, KeyPath
from mam_core.config.schema import TABLES
from mam_core.pace import POLL_VARIABLE

_HEAD = f"""\
# Configuration

This page is made from the code (`python -m mam_core.config.reference`), so it is complete.

`mam init` writes a commented `mam.toml`; `mam config` prints every value that is in force and
where it comes from; `mam config path` prints the files. `mam config --schema` prints a JSON schema,
which editors use: `mam init --schema` puts it beside `mam.toml` and names it in the first line.

```console
$ mam init --yes --agent shell --slots 4
…/mam.toml
mam: next: …
mam: then: …
$ mam config groups
KEY                  VALUE  ORIGIN
groups.agents.slots  4      …/mam.toml:…
```

**Which file.** The nearest `mam.toml` from the working directory upward is the project's.
`~/.config/mam/mam.toml` (or below `$XDG_CONFIG_HOME`) is the person's; the project's wins, key by
key. `--config FILE` or `{CONFIG_VARIABLE}` names the only file that is read. A file that belongs to
somebody else, or that everybody may write to, is passed over with a notice, because settings say
which programs are run.

**Which registry.** `--registry-dir`, `MAM_REGISTRY_DIR` or `[store] registry_dir` name it.
Otherwise it is the nearest `.mam/jobs` (or legacy `.hermes/jobs`) from the working directory
upward. The search ends at the home folder, which it includes, and before a folder that belongs to
somebody else or is on another file system. Where it finds none, the first job makes `.mam/jobs` in
the working directory, and on a terminal a line says so. The drop-in scripts (`registry.py` …) look
in the working directory only.

**Which value.** A flag wins over the environment, the environment over the files, the files over
the defaults.

**A mistake** is one sentence with file, line and key, and nothing is done:

```console
$ printf '[defaults]\\ntimeot_sec = 60\\n' > typo.toml
$ mam --config typo.toml list   # exits 1
mam: …/typo.toml, line 2: defaults.timeot_sec is not known; did you mean timeout_sec?
```

**While something runs.** The console and every other long-lived command (`mam work`, `watch`,
`relay`) read the files again within a few seconds of a change; `^r` in the console does it at once.
A file with a mistake, or one that is gone, leaves the settings as they were, and a sentence says
so. What counts then:

- in every such command: `[schedules]` and what they make jobs from, `[groups]` and their slots,
  `[autoscale]`, `sweep_sec`;
- in the console also `[templates]`, `[defaults]`, `[agents]`, `[notify]`, `[keys]`, `theme` and
  `columns`.

What needs a restart: `[store]`, `[broker]`, `[tmux]`; of the console `mouse` and `glyphs`; of a
worker `[agents]`, `[needs]` and `[defaults]`, because it runs every job as it would have at its
start (`mam stop`, which lets it finish, and `mam spawn`). Flags and the environment stay as they
were.

Paths are relative to the file that names them, and `~` is your home. Sizes are bytes or `"512M"`,
`"8G"`. No password stands in a file of settings: it is read from a file of its own
(`password_file`) or from the environment."""

_ENVIRONMENT = """\
## Environment

These variables win over every file; no other setting can be made by the environment.

| variable | setting |
|---|---|"""

_POLL = f"""\
`{POLL_VARIABLE}` caps how long any loop of mam sleeps between two looks, in seconds: for tests and
impatient people."""


def page() -> str:
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield _HEAD
    for name, table in TABLES.items():
        yield ""
        yield from _table(name, table)
    yield ""
    yield _ENVIRONMENT
    yield f"| `{CONFIG_VARIABLE}` | the only file that is read |"
    for variable, path in VARIABLES.items():
        yield f"| `{variable}` | `{'.'.join(path)}` |"
    yield ""
    yield _POLL


def _table(name: str, table: Table) -> Iterator[str]:
    yield f"## [{name}.NAME]" if table.named else f"## [{name}]"
    yield ""
    yield table.meaning
    if name == "templates":
        # All of them mean what they mean in a registration.
        keys = ", ".join(f"`{key}`" for key in table.settings)
        yield f"`mam register --template NAME` and the console's form use it. Keys: {keys}."
        return
    if table.any_key is not None:
        yield f"Each value is {table.any_key.kind}: {table.any_key.meaning}."
        if name == "keys":
            yield "`?` in the console shows the actions with their names."
        return
    yield ""
    yield "| key | what it is | value | default |"
    yield "|---|---|---|---|"
    for key, setting in table.settings.items():
        if setting.in_file:
            yield _row((name, key), setting)


def _row(path: KeyPath, setting: Setting) -> str:
    example = example_of(path, setting)
    default = f"`{example.toml}`" if example.is_default else ""
    value = ", ".join(f"`{choice}`" for choice in setting.choices) or _value(setting, example.toml)
    cells = (f"`{path[-1]}`", setting.meaning, value, default)
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _value(setting: Setting, example: str) -> str:
    kind = "as in `mam register`" if setting.kind is Kind.FIELD else str(setting.kind)
    return kind if setting.default is not None else f"{kind}; `{example}`"


if __name__ == "__main__":
    sys.stdout.write(page())
