"""All changes of all jobs, in columns: some fifty bytes each and the words, not an object.

A million objects would make every collection of garbage a pause that a person sees.
What a job stood like is an object, since it is seldom; what it said is kept as numbers
and one long text, and made into an object for whoever looks.
"""

from __future__ import annotations

from array import array

from mam_core.agents.hearing import Heard
from mam_core.replay.folding import Change
from mam_core.replay.standing import Stand, Then, Word
from mam_core.summaries import Used

#: Of a change that is a word.
WORD = -1


class Columns:
    """Append-only, so that one thread may add while another looks."""

    def __init__(self) -> None:
        self.job_ids: list[str] = []
        self.at = array("d")
        self.job = array("I")
        #: The change of the same chain of the same job before this one, plus one; 0 for none.
        self.before = array("I")
        #: The number of the stand that it is, or `WORD`.
        self.kind = array("i")
        self._seq = array("Q")
        self._said_at = array("d")
        self._name = array("H")
        self._heard = array("I")
        self._used = array("I")
        self._text_at = array("Q")
        self._stands: list[Stand] = []
        self._names: list[str] = []
        self._numbers: dict[str, int] = {}
        self._heards: list[Heard] = []
        self._useds: list[Used] = []
        self._text = bytearray()
        # By job, the newest change of each chain, plus one.
        self._last_stand = array("I")
        self._last_word = array("I")

    def __len__(self) -> int:
        return len(self.at)

    def new_job(self, job_id: str) -> int:
        self._last_stand.append(0)
        self._last_word.append(0)
        self.job_ids.append(job_id)
        return len(self.job_ids) - 1

    def add(self, job: int, change: Change) -> None:
        number = len(self.at) + 1
        if change.stand is not None:
            self.before.append(self._last_stand[job])
            self._last_stand[job] = number
            self._stands.append(change.stand)
            self.kind.append(len(self._stands) - 1)
            self._add_word(None)
        else:
            self.before.append(self._last_word[job])
            self._last_word[job] = number
            self.kind.append(WORD)
            self._add_word(change.word)
        self.job.append(job)
        self.at.append(change.at)

    def _add_word(self, word: Word | None) -> None:
        if word is None:
            self._seq.append(0)
            self._said_at.append(0.0)
            self._name.append(0)
            self._heard.append(0)
            self._used.append(0)
        else:
            self._seq.append(word.seq)
            self._said_at.append(word.at)
            self._name.append(self._number_of(word.name))
            if not self._heards or self._heards[-1] is not word.heard:
                self._heards.append(word.heard)
            self._heard.append(len(self._heards) - 1)
            if not self._useds or self._useds[-1] is not word.used:
                self._useds.append(word.used)
            self._used.append(len(self._useds) - 1)
            self._text += word.words.encode("utf-8", "surrogatepass")
        self._text_at.append(len(self._text))

    def _number_of(self, name: str) -> int:
        number = self._numbers.get(name)
        if number is None:
            if len(self._names) >= _MOST_NAMES:
                name = "other"  # somebody makes up names
            number = self._numbers.setdefault(name, len(self._names))
            if number == len(self._names):
                self._names.append(name)
        return number

    def stand(self, change: int) -> Stand:
        return self._stands[self.kind[change]]

    def word(self, change: int) -> Word:
        begin = self._text_at[change - 1] if change else 0
        words = self._text[begin : self._text_at[change]].decode("utf-8", "surrogatepass")
        name, heard = self._names[self._name[change]], self._heards[self._heard[change]]
        return Word(self._seq[change], name, words, self._said_at[change], heard, self.used(change))

    def used(self, change: int) -> Used:
        return self._useds[self._used[change]]

    def then(self, job: int, stand: int, word: int) -> Then | None:
        """A job by its newest changes, plus one, of both chains; None when it is not there."""
        if not stand:
            return None
        found = self.stand(stand - 1)
        if found.gone:
            return None
        return Then(self.job_ids[job], found, self.word(word - 1) if word else None)


_MOST_NAMES = 60_000
