"""A registry folder and its audit log as a place to carry a registry from and to."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress

from mam_core import codec
from mam_core.audit import META, STATUS
from mam_core.audit_lines import EVENTS
from mam_core.disk import Folder, is_temp_name
from mam_core.errors import MamError, RegistryMissing, UnsafePath
from mam_core.estate import Kind, Piece
from mam_core.records import check_job_id
from mam_core.stores.base import Paper
from mam_core.stores.catalogue import RECORD_SUFFIX, encodable, is_record_name, record_stems
from mam_core.stores.commit import OUTBOX
from mam_core.stores.files import FilesStore
from mam_core.stores.files_transaction import ARCHIVE
from mam_core.stores.gates_file import GATES_NAME
from mam_core.stores.outbox_files import BAD
from mam_core.stores.paper_files import paper_name, read_paper
from mam_core.stores.post_files import SUFFIX, file_name

_MAX_BYTES = 1 << 30


class FilesEstate:
    """The folders of one store."""

    def __init__(self, store: FilesStore) -> None:
        self._store = store
        self.place = store.path
        self._logs_path = store.audit.path

    @contextmanager
    def frozen(self) -> Iterator[None]:
        with self._store.transaction():
            yield

    @contextmanager
    def opened(self) -> Iterator[None]:
        with self._store.transaction(create=True):
            yield

    def count(self) -> int:
        return sum(1 for _ in self._records()) + len(self._store.audit.job_ids())

    # -- from here -------------------------------------------------------------------------

    def pieces(self) -> Iterator[Piece]:
        for job_id in sorted(self._store.audit.job_ids()):
            piece = self._history(job_id)
            if piece.data or piece.meta is not None:  # else only the files of attempts
                yield piece
        yield from self._archived()
        yield from self._posts()
        with suppress(FileNotFoundError), Folder.open(self.place) as folder:
            if folder.has(GATES_NAME):
                yield Piece(Kind.GATES, "", folder.read(GATES_NAME, _MAX_BYTES)[0])
            for paper in Paper:
                if (data := read_paper(folder, paper)) is not None:
                    yield Piece(Kind.PAPER, paper, data)
        yield from self._records()

    def left(self) -> list[str]:
        try:
            with Folder.open(self.place) as folder:
                names = [name for name in folder.names() if not name.startswith(".")]
                return sorted(
                    name
                    for name in names
                    if not is_record_name(name) or _bytes(folder, name) is None
                )
        except FileNotFoundError:
            return []

    def _history(self, job_id: str) -> Piece:
        with Folder.open(self._logs_path) as root, root.subfolder(job_id) as folder:
            found = [_bytes(folder, name) for name in (EVENTS, META, STATUS)]
        return Piece(Kind.HISTORY, job_id, found[0] or b"", found[1], found[2])

    def _archived(self) -> Iterator[Piece]:
        with ExitStack() as stack:
            try:
                home = stack.enter_context(Folder.open(os.path.join(self.place, ARCHIVE)))
            except FileNotFoundError:
                return
            for batch in sorted(home.names()):
                with suppress(MamError, OSError), home.subfolder(batch) as folder:
                    for stem in sorted(record_stems(folder)):
                        data = folder.read(stem + RECORD_SUFFIX, _MAX_BYTES)[0]
                        yield Piece(Kind.ARCHIVED, f"{batch}/{stem}", data)

    def _posts(self) -> Iterator[Piece]:
        with ExitStack() as stack:
            try:
                home = stack.enter_context(Folder.open(os.path.join(self.place, OUTBOX)))
            except FileNotFoundError:
                return
            for name in sorted(home.names()):
                plain = name.removesuffix(BAD)
                seq, _, job_id = plain.removesuffix(SUFFIX).partition("-")
                if not (seq.isdecimal() and plain.endswith(SUFFIX)) or is_temp_name(name):
                    continue
                if (data := _bytes(home, name)) is not None:
                    kind = Kind.POST if plain == name else Kind.ASIDE
                    yield Piece(kind, f"{int(seq)}/{job_id}", data)

    def _records(self) -> Iterator[Piece]:
        try:
            folder = Folder.open(self.place)
        except FileNotFoundError:
            raise RegistryMissing(f"there is no registry at {self.place}") from None
        with folder:
            for stem in sorted(record_stems(folder)):
                data = _bytes(folder, stem + RECORD_SUFFIX)
                if data is None:
                    continue  # no plain file of ours: named by `left`
                try:
                    codec.decode_job(data, check_job_id(stem))
                except MamError as problem:
                    yield Piece(Kind.UNREADABLE, encodable(stem), data, why=str(problem))
                else:
                    yield Piece(Kind.RECORD, stem, data)

    # -- to here ---------------------------------------------------------------------------

    def put(self, pieces: Sequence[Piece]) -> None:
        for piece in pieces:
            self._put(piece)

    def _put(self, piece: Piece) -> None:
        match piece.kind:
            case Kind.HISTORY:
                with (
                    Folder.open(self._logs_path, create=True) as root,
                    root.subfolder(check_job_id(piece.name), create=True) as folder,
                ):
                    for name, data in ((META, piece.meta), (STATUS, piece.status)):
                        if data is not None:
                            folder.write(name, data)
                    folder.write(EVENTS, piece.data)  # last: what was cut short has none
            case Kind.ARCHIVED:
                batch, _, job_id = piece.name.rpartition("/")
                with (
                    Folder.open(self.place) as home,
                    home.subfolder(ARCHIVE, create=True) as archive,
                    archive.subfolder(_safe(batch), create=True) as folder,
                ):
                    folder.write(_safe(job_id) + RECORD_SUFFIX, piece.data)
            case Kind.POST | Kind.ASIDE:
                seq, _, job_id = piece.name.partition("/")
                name = file_name(int(seq), _safe(job_id)) + ("" if piece.kind is Kind.POST else BAD)
                with Folder.open(self.place) as home, home.subfolder(OUTBOX, create=True) as folder:
                    folder.write(name, piece.data)
            case Kind.GATES:
                with Folder.open(self.place) as home:
                    home.write(GATES_NAME, piece.data)
            case Kind.PAPER:
                with Folder.open(self.place) as home:
                    home.write(paper_name(Paper(piece.name)), piece.data)
            case Kind.UNREADABLE | Kind.RECORD:
                with Folder.open(self.place) as home:
                    home.write(_safe(piece.name) + RECORD_SUFFIX, piece.data)

    def settle(self) -> None:
        with Folder.open(self.place) as folder:
            folder.sync_all()


def _bytes(folder: Folder, name: str) -> bytes | None:
    try:
        return folder.read(name, _MAX_BYTES)[0]
    except (OSError, MamError):
        return None


def _safe(name: str) -> str:
    """What came from elsewhere becomes part of a path only when it is a plain name."""
    if not name or name.startswith(".") or "/" in name or "\0" in name:
        raise UnsafePath(f"{name!r:.80} cannot be the name of a file")
    return name
