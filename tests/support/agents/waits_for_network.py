"""A stand-in agent that only waits while bytes arrive: ``waits_for_network.py PORT SECONDS``.

It reads none of them, so that neither CPU nor read bytes give it away as alive.
"""

import socket
import sys
import time

print("stand-in agent: this one waits for the network", flush=True)
line = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
time.sleep(float(sys.argv[2]))
line.close()
