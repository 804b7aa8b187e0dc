"""An agent's output is read whatever its worker waits for."""

from __future__ import annotations

import os

import pytest

from mam_core.api import registry_lock
from mam_core.records import Status
from tests.support.patience import eventually
from tests.support.working import Workshop

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs Linux")

#: Says that it runs, waits to be told to go on, prints far more than a pipe holds, line by line
#: as a build does, and says when the last of it was taken.
_PRINTS = """
echo begun
until [ -e "$0/go" ]; do sleep 0.05; done
yes 'a line of a chatty build' | head -c 3000000
touch "$0/printed"
"""


def test_an_agent_prints_on_while_the_registry_is_held_by_somebody_else(shop: Workshop) -> None:
    """The lock is let go only when all was taken: who reads between two tries never gets there."""
    chatty = shop.agent("chatty", "/bin/sh", "-c", _PRINTS, str(shop.folder))
    job_id = shop.add(chatty)
    with shop.at_work():
        shop.until_said(job_id, "begun")
        with registry_lock(str(shop.path)):
            (shop.folder / "go").touch()
            eventually((shop.folder / "printed").exists, "all that it prints is taken")
        job = shop.until_status(job_id, Status.COMPLETED, Status.ERROR)
    assert job.status is Status.COMPLETED
    output = shop.output(job_id)
    assert output.startswith("begun\na line of a chatty build\n")
    assert len(output) == len("begun\n") + 3_000_000
