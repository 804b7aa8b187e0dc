"""The scripts find mam wherever they are called from; where they cannot, they say so."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.scripts.plain import SCRIPTS, run

RUNNABLE = ("registry", "publish_event", "job_subscriber")
ALL = (*RUNNABLE, "mqtt_common")


def test_through_a_link_to_their_folder(here: Path, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "scripts").symlink_to(SCRIPTS)
    (tmp_path / "registry").symlink_to(SCRIPTS / "registry.py")
    for path in (tmp_path / "bin" / "scripts" / "registry.py", tmp_path / "registry"):
        done = run(path, "list", "--json", cwd=here)
        assert (done.returncode, done.stdout, done.stderr) == (0, "[]\n", "")
    code = f"import sys; sys.path.insert(0, {str(tmp_path / 'bin' / 'scripts')!r})\n"
    done = run("-c", f"{code}import registry, mqtt_common; print('ok')", cwd=here)
    assert (done.stdout, done.stderr) == ("ok\n", "")


def test_a_copy_without_mam_is_one_sentence(here: Path, tmp_path: Path) -> None:
    copies = tmp_path / "copies" / "scripts"
    shutil.copytree(SCRIPTS, copies)
    for name in RUNNABLE:
        done = run(copies / f"{name}.py", "--help", cwd=here)
        assert (done.returncode, done.stdout) == (1, "")
        assert re.fullmatch(
            rf"{name}\.py: mam is not installed for \S+ and not in {copies.parent}: link .*\n",
            done.stderr,
        )
    for name in ALL:  # whoever imports it may catch what an import raises
        code = (
            f"import sys; sys.path.insert(0, {str(copies)!r})\n"
            f"try:\n    import {name}\nexcept ImportError as problem:\n    print(problem)"
        )
        done = run("-c", code, cwd=here)
        assert done.stdout.startswith(f"{name}.py: mam is not installed"), done.stderr


@pytest.mark.parametrize("name", RUNNABLE)
def test_an_old_python_is_one_sentence(here: Path, name: str) -> None:
    path = SCRIPTS / f"{name}.py"
    code = (
        "import runpy, sys\n"
        "sys.version_info, sys.version = (3, 9, 2), '3.9.2 (default)'\n"
        f"runpy.run_path({str(path)!r}, run_name='__main__')"
    )
    done = run("-c", code, cwd=here)
    assert done.returncode == 1
    assert re.fullmatch(
        rf"{name}\.py: mam needs Python 3\.11 or newer; \S+ is 3\.9\.2\n", done.stderr
    )


def test_all_of_them_look_for_it_alike() -> None:
    """The search cannot be shared: one file alone may be linked to."""
    blocks = {
        re.search(r"^try:\n    import mam_core.*?sys\.path\.append\(_core\)\n", text, re.M | re.S)[
            0
        ]  # type: ignore[index]
        for text in ((SCRIPTS / f"{name}.py").read_text() for name in ALL)
    }
    assert len(blocks) == 1
