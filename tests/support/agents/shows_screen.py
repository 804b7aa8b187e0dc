"""Stand-in for an agent that stands at a dialog: ``shows_screen.py SCREEN KEYS WORD …``

It draws the recorded screen, and writes every byte that it is sent into the file KEYS.
"""

import os
import sys
import tty

tty.setraw(0)
with open(sys.argv[1], encoding="utf-8") as file:
    lines = file.read().rstrip("\n").split("\n")
sys.stdout.write("\x1b[?2004h\x1b[2J\x1b[H" + "\r\n".join(lines))
sys.stdout.flush()
with open(sys.argv[2], "ab", buffering=0) as keys:
    while data := os.read(0, 4096):
        keys.write(data)
