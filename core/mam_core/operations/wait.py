"""Wait for jobs to end: by their records alone, so that no broker is needed for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from mam_core.config import Config
from mam_core.events.feed import Feed, Item, Notice, NoticeKind
from mam_core.operations.ending import Ending, Limits
from mam_core.operations.endings import Endings
from mam_core.operations.following import follow
from mam_core.operations.sweeping import sweeping
from mam_core.registry import Registry
from mam_core.wiring import open_feed

_SAID = frozenset({NoticeKind.DIRECTORY_LOST, NoticeKind.DIRECTORY_BACK})


def wait(
    registry: Registry,
    registry_path: str,
    config: Config,
    job_ids: Sequence[str],
    *,
    timeout: float | None,
    end: Callable[[Ending], None],
    say: Callable[[str], None],
    is_stopped: Callable[[], bool] = lambda: False,
    allow_network: bool = False,
) -> Endings:
    """`end` is called for each job as it ends, `say` with what hinders the look at them.

    Raises `JobNotFound` before anything is begun. A job's own timeouts are not ours to count.
    """

    @contextmanager
    def listen(jobs: frozenset[str] | None) -> Iterator[Feed]:
        feed = open_feed(
            registry_path, config, jobs=jobs, with_brokers=False, allow_network=allow_network
        )
        # Or a job whose worker is dead would be waited for in vain.
        with sweeping(registry_path, config, allow_network=allow_network), feed:
            yield feed

    def tell(items: Sequence[Item]) -> None:
        for item in items:
            if isinstance(item, Notice) and item.kind in _SAID:
                say(item.text)

    return follow(
        registry,
        [registry.get(job_id) for job_id in job_ids],
        Limits(timeout, by_record=False),
        listen,
        tell=tell,
        end=end,
        is_stopped=is_stopped,
        hears=False,
    )
