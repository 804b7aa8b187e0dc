"""A stand-in for an interactive agent: a terminal program with an input box, and not a real agent.

``interactive.py [--first-dialog] [--lose-enters N] [--mute] [--no-paste] [--exit CODE] WORD …``

It reads the file that the pasted line names, and does what its lines say: ``say TEXT``,
``work SECONDS``, ``until FILE`` (work until it is there), ``ask QUESTION``, ``publish EVENT``,
``write FILE TEXT``, ``child``, ``fail WORDS``, ``die CODE``. A text without a file is a prompt,
too: it is repeated. It reports its state by OSC 7501 as codex does, unless it is mute.
"""

import argparse
import os
import re
import select
import signal
import subprocess
import sys
import termios
import time
import tty

RULE = "─" * 40
PASTE = re.compile(rb"\x1b\[200~(.*?)\x1b\[201~", re.DOTALL)
FILE = re.compile(r"read the file (?:'([^']+)'|(\S+)) and do")

parser = argparse.ArgumentParser()
parser.add_argument("--first-dialog", action="store_true")
parser.add_argument("--lose-enters", type=int, default=0)
parser.add_argument("--mute", action="store_true")
parser.add_argument("--no-paste", action="store_true")
parser.add_argument("--exit", type=int)
options, _ = parser.parse_known_args()
if options.exit is not None:
    print("stand-in agent: this one ends at once")
    sys.exit(options.exit)


class Interrupted(Exception):
    """Esc."""


class Agent:
    def __init__(self) -> None:
        self.text = ""
        self.lines = ["stand-in agent: a terminal program for tests, not a real agent"]
        self.status = "ready"
        self.question = ""
        self.heard = b""
        self.lost = 0
        self.pastes = 0
        self.submits = 0

    # -- the screen ------------------------------------------------------------------------

    def report(self, state: str) -> None:
        if not options.mute:
            sys.stdout.write(f"\x1b]7501;state={state}:app=codex\x1b\\")

    def draw(self, *_: object) -> None:
        size = os.get_terminal_size()
        shown = [f"size {size.lines}x{size.columns}, pastes {self.pastes}", *self.lines[-12:]]
        if self.question:
            shown += [RULE, self.question, "❯ 1. Yes", "  2. No", "Esc to cancel"]
        else:
            wide = size.columns - 4
            written = self.text.split("\n")
            parts = [one[at : at + wide] for one in written for at in range(0, len(one) or 1, wide)]
            shown += [RULE, f"❯ {parts[0]}", *(f"  {part}" for part in parts[1:]), RULE]
            shown += [f"status: {self.status}"]
        sys.stdout.write("\x1b[2J\x1b[H" + "\r\n".join(shown))
        sys.stdout.flush()

    def say(self, words: str) -> None:
        self.lines.append(words)
        self.draw()

    # -- the keys --------------------------------------------------------------------------

    def keys(self, seconds: float) -> list[bytes]:
        """Pastes whole, other keys one by one."""
        ready, _, _ = select.select([0], [], [], seconds)
        if ready:
            data = os.read(0, 65536)
            if not data:
                sys.exit(0)
            self.heard += data
        found: list[bytes] = []
        while self.heard:
            if self.heard.startswith(b"\x1b[200~"):
                match = PASTE.match(self.heard)
                if match is None:
                    break
                found.append(match[0])
                self.heard = self.heard[match.end() :]
            else:
                found.append(self.heard[:1])
                self.heard = self.heard[1:]
        return found

    def edit(self, key: bytes) -> bool:
        """True when a text was sent off."""
        match = PASTE.match(key)
        if match:
            self.pastes += 1
            self.text += match[1].decode()
        elif key in (b"\r", b"\n"):
            if not self.text:
                return False
            if self.lost < options.lose_enters:
                self.lost += 1
                return False
            return True
        elif key == b"\x7f":
            self.text = self.text[:-1]
        elif key >= b" ":
            self.text += key.decode("latin-1")
        self.draw()
        return False

    def choose(self, question: str) -> str:
        """Ignores pastes and all but the digits and Esc, as a dialog does."""
        self.question = question
        self.draw()
        while True:
            for key in self.keys(0.5):
                if key in (b"1", b"2"):
                    self.question = ""
                    self.draw()
                    return key.decode()
                if key == b"\x1b":
                    self.question = ""
                    raise Interrupted

    def rest(self, seconds: float) -> None:
        """Work; what is typed meanwhile goes into the box."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            for key in self.keys(min(left, 0.1)):
                if key == b"\x1b":
                    raise Interrupted
                self.edit(key)

    # -- a turn ----------------------------------------------------------------------------

    def turn(self, text: str) -> None:
        self.submits += 1
        self.say(f"> prompt {self.submits}: {text[:60]}")
        self.status = "working (esc to interrupt)"
        self.report("working")
        self.draw()
        try:
            end = self.obey(text)
        except Interrupted:
            self.say("* interrupted")
            end = "idle"
        self.status = "ready"
        self.report(end)
        if end != "idle":
            self.report("idle")
        self.draw()

    def obey(self, text: str) -> str:
        match = FILE.search(text)
        if match is None:
            self.rest(0.3)
            self.say(f"you said: {text}")
            return "done"
        with open(match[1] or match[2], encoding="utf-8", errors="surrogateescape") as file:
            prompt = file.read()
        self.say(f"the prompt has {len(prompt)} characters")
        for line in prompt.splitlines():
            verb, _, rest = line.partition(" ")
            if verb == "say":
                self.say(rest)
            elif verb == "work":
                self.rest(float(rest))
            elif verb == "until":
                while not os.path.exists(rest):
                    self.rest(0.05)
            elif verb == "ask":
                self.report("blocked")
                answer = self.choose(rest)
                self.report("working")
                self.say(f"answered {answer}")
            elif verb == "publish":
                self.publish(text, rest)
            elif verb == "write":
                name, _, words = rest.partition(" ")
                with open(name, "w", encoding="utf-8") as file:
                    file.write(words)
            elif verb == "child":
                subprocess.Popen(
                    [sys.executable, "-c", "import time; time.sleep(600)", *sys.argv[1:]],
                    start_new_session=True,
                )
            elif verb == "fail":
                self.say(f"! {rest}")
                return "error"
            elif verb == "die":
                os._exit(int(rest))
        return "done"

    def publish(self, text: str, event: str) -> None:
        """By the very command that the line names."""
        command = text.split("run: ")[1].split(" completed")[0].split()
        subprocess.run(
            [sys.executable, "-m", "mam_core.cli.main", *command[1:], event, "--detail", "by hand"],
            check=False,
            capture_output=True,
        )


def main() -> None:
    before = termios.tcgetattr(0)
    tty.setraw(0)
    agent = Agent()
    signal.signal(signal.SIGWINCH, agent.draw)
    sys.stdout.write("\x1b]0;stand-in\x07" + "\x1b[?2004h" * (not options.no_paste))
    for state in ("idle", "working", "idle"):
        agent.report(state)
    try:
        if options.first_dialog:
            agent.choose("Trust this folder?")
        agent.draw()
        while True:
            for key in agent.keys(3600):
                if agent.edit(key):
                    text, agent.text = agent.text, ""
                    agent.turn(text)
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, before)


main()
