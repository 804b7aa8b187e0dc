"""``mam mcp`` with the protocol's own client, in both ways of beginning.

The client and its thirty packages are none of the project's: they are put into a folder of
the test's own, where an index of packages can be reached.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from mam_core.config import load
from mam_core.wiring import open_registry
from tests.cli.conftest import environment
from tests.support.jobs import add

pytestmark = pytest.mark.release

PROGRAM = """
import asyncio, json, sys
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

async def main():
    server = StdioServerParameters(command=sys.argv[1], args=sys.argv[4:], cwd=sys.argv[2])
    async with Client(stdio_client(server), mode=sys.argv[3]) as client:
        tools = await client.list_tools()
        found = await client.call_tool("list_jobs", {})
        wrong = await client.call_tool("get_job", {"job_id": "nobody"})
        print(json.dumps({
            "version": client.protocol_version,
            "tools": [tool.name for tool in tools.tools],
            "jobs": found.content[0].text,
            "wrong": [wrong.is_error, wrong.content[0].text],
        }))

asyncio.run(main())
"""


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("client") / "packages"
    uv = Path(sys.executable).parent / "uv"
    command = [str(uv), "-q", "--system-certs", "pip", "install", "--target", str(folder), "mcp>=2"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"the client cannot be had here: {done.stderr.strip()[:300]}")
    return folder


@pytest.mark.parametrize(("mode", "version"), [("legacy", "2025-11-25"), ("auto", "2026-07-28")])
def test_the_official_client_is_served(
    packages: Path, tmp_path: Path, mode: str, version: str
) -> None:
    with open_registry(str(tmp_path / ".mam" / "jobs"), config=load()) as registry:
        job_id = add(registry, "count the stars")
    words = ["-m", "mam_core", "mcp"]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, sys.executable, str(tmp_path), mode, *words],
        capture_output=True,
        text=True,
        timeout=100,
        env={**environment(), "PYTHONPATH": str(packages)},
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["version"] == version
    assert "list_jobs" in told["tools"]
    assert "register_job" not in told["tools"]
    assert json.loads(told["jobs"])["jobs"][0]["job_id"] == job_id
    assert told["wrong"][0] is True
    assert told["wrong"][1].startswith("there is no job nobody")
