"""What killed processes leave in the registry: prompts, temp files, events that nobody took."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial

from mam_core.disk import Folder, is_temp_name
from mam_core.doctor.findings import Area, Finding, Fix, Mended, many, note, warning
from mam_core.doctor.ground import Ground, Look
from mam_core.errors import MamError, StoreError
from mam_core.operations.broker import keep_broker
from mam_core.operations.relay import PATIENCE_SEC, drain, waits_for_embedded
from mam_core.records import Status, check_job_id
from mam_core.sessions import FOLDER as SESSIONS
from mam_core.table import age
from mam_core.wiring import outbox_path
from mam_core.work.witnesses import ATTEMPTS, PROMPT

#: Nobody is at work on a file for so long.
OLD_SEC = 3600.0

_AREA = Area.REGISTRY
_BROKER = ".broker"


def prompts(look: Look) -> Iterator[Finding]:
    """A prompt file is there while its attempt runs; a number is never given to another one."""
    left = _left_prompts(look)
    if left:
        words = f"{many(len(left), 'prompt file')} of attempts that do not run, such as {left[0]}"
        fix = Fix(
            "remove them: the records have the prompts", partial(_remove_prompts, look.ground)
        )
        yield warning(_AREA, "prompts", words, fix)


def _left_prompts(look: Look) -> list[str]:
    log = look.registry.store.audit.path
    found = []
    for job_id in _listed(log):
        try:
            check_job_id(job_id)
        except MamError:
            continue
        attempts = os.path.join(log, job_id, ATTEMPTS)
        if os.path.islink(os.path.join(log, job_id)) or os.path.islink(attempts):
            continue  # what is behind a link is not ours to tidy
        for attempt in _listed(attempts):
            if os.path.isfile(os.path.join(attempts, attempt, PROMPT)):
                job = look.running.get(job_id)
                if job is None or str(job.attempt) != attempt:
                    found.append(os.path.join(attempts, attempt, PROMPT))
    return found


def _remove_prompts(ground: Ground) -> Mended:
    removed = 0
    for path in _left_prompts(Look(ground)):
        if not _is_running(ground, path):
            with Folder.open(os.path.dirname(path)) as folder:
                folder.remove(PROMPT)
                removed += 1
    return Mended(True, f"{many(removed, 'prompt file')} removed")


def _is_running(ground: Ground, path: str) -> bool:
    """Its record says so this moment: the list of those that run may be a moment old."""
    attempt = os.path.basename(os.path.dirname(path))
    job_id = os.path.basename(os.path.dirname(os.path.dirname(os.path.dirname(path))))
    try:
        job = ground.registry.get(job_id)
    except MamError:
        return False
    return job.status is Status.RUNNING and str(job.attempt) == attempt


def temp_files(look: Look) -> Iterator[Finding]:
    left = _old_temp_files(look.ground.registry_path)
    if left:
        words = f"{many(len(left), 'temp file')} older than an hour, such as {left[0]}"
        fix = Fix("remove them", partial(_remove_temp_files, look.ground))
        yield warning(_AREA, "temp files", words, fix)


def _old_temp_files(registry_path: str) -> list[str]:
    before = time.time() - OLD_SEC
    places = [registry_path, outbox_path(registry_path)]
    places += [os.path.join(registry_path, name) for name in (SESSIONS, _BROKER)]
    return [
        path
        for place in places
        for name in _listed(place)
        if is_temp_name(name) and _is_older(path := os.path.join(place, name), before)
    ]


def _remove_temp_files(ground: Ground) -> Mended:
    """Under the lock: whoever took it last has made every change that a temp file stood for."""
    removed = 0
    with ground.registry.store.transaction():
        for path in _old_temp_files(ground.registry_path):
            with Folder.open(os.path.dirname(path)) as folder:
                folder.remove(os.path.basename(path))
                removed += 1
    return Mended(True, f"{many(removed, 'temp file')} removed")


def events(look: Look) -> Iterator[Finding]:
    """Events that no broker has taken for long; what is no event was set aside by a relay."""
    home = outbox_path(look.ground.registry_path)
    now = time.time()
    names = _listed(home)
    posts = [os.path.join(home, name) for name in names if name[:1].isdecimal()]
    old = [path for path in posts if path.endswith(".json") and _is_older(path, now - OLD_SEC)]
    if old:
        oldest = min((_changed_at(path) for path in old), default=now)
        words = f"no broker took {many(len(old), 'event')}, the oldest for {age(now - oldest)}"
        fix = Fix("bring them on now", partial(_relay, look.ground))
        yield warning(_AREA, "events", words, fix, "waiting")
    bad = [path for path in posts if path.endswith(".bad")]
    if bad:
        words = f"{many(len(bad), 'file')} set aside as no event, such as {bad[0]}"
        yield note(_AREA, "events", words, rule="set aside")


def _relay(ground: Ground) -> Mended:
    with ExitStack() as stack:
        if waits_for_embedded(ground.registry, ground.registry_path):
            stack.enter_context(keep_broker(ground.registry_path, ground.config))
        left = drain(
            ground.registry,
            ground.registry_path,
            ground.config,
            threading.Event(),
            patience_sec=PATIENCE_SEC,
        )
    if left is None:
        return Mended(False, "another relay is at work on them")
    if not left.posts:
        return Mended(True, "a broker has all of them")
    why = f": {left.trouble}" if left.trouble else ""
    return Mended(False, f"{many(left.posts, 'event')} still queued{why}")


def _listed(path: str) -> list[str]:
    try:
        with Folder.open(path) as folder:
            return sorted(folder.names())
    except (OSError, StoreError):
        return []


def _changed_at(path: str) -> float:
    try:
        return os.stat(path, follow_symlinks=False).st_mtime
    except OSError:
        return time.time()  # gone: as young as can be


def _is_older(path: str, moment: float) -> bool:
    return _changed_at(path) < moment
