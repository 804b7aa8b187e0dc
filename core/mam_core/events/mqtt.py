"""paho, and nothing else of ours knows it: a client made ready for one broker."""

from __future__ import annotations

import os
import queue
import ssl
from collections.abc import Callable
from typing import Any, NoReturn

from paho.mqtt import client as paho
from paho.mqtt.enums import CallbackAPIVersion, MQTTErrorCode

from mam_core.errors import ConfigError, MamError
from mam_core.events.connection import BrokerUnreachable, Connection
from mam_core.events.listeners import is_ours
from mam_core.pace import paced_retry

#: An unreachable broker must fail in bounded time; the network stack's own patience is minutes.
CONNECT_TIMEOUT_SEC = 5.0
#: A broker that vanished without a word is noticed after one and a half times this.
KEEPALIVE_SEC = 15
_RECONNECT_SEC = (1, 30)


class Client(paho.Client):
    """paho's client, which also knows where its broker is, and looks again before each connect.

    The embedded broker may have moved to another port since, and nobody but a program of ours is
    shown its password. Set the callbacks, then `reach` the broker; or `loop_start`, which tries
    for ever in a thread of its own and returns at once. `stop` ends either.
    """

    def __init__(
        self,
        known: Connection,
        current: Callable[[], Connection],
        client_id: str | None,
        **more: Any,
    ) -> None:
        self._known = known
        self._current = current
        # Made fresh each time: of two clients with one id the broker throws the first one out.
        made = client_id or f"{known.client_id_prefix}-{os.getpid()}-{os.urandom(4).hex()}"
        super().__init__(CallbackAPIVersion.VERSION2, client_id=made, **more)
        self.connect_timeout = CONNECT_TIMEOUT_SEC
        self.max_inflight_messages_set(0)  # who sends much counts for himself
        first, longest = (paced_retry(one) for one in _RECONNECT_SEC)
        # paho declares whole seconds, but only doubles, compares and waits for them: tests of
        # reconnection count on a fifth of a second.
        self.reconnect_delay_set(first, longest)  # type: ignore[arg-type]
        self._log_in(known)
        if known.tls:
            self._trust(known)
        self.connect_async(known.host, known.port, KEEPALIVE_SEC)

    @property
    def connection(self) -> Connection:
        """Where it connects to, as of its last look."""
        return self._known

    def reach(self, timeout: float = CONNECT_TIMEOUT_SEC) -> None:
        """Connect; from here on as after `loop_start`, once the broker has said welcome.

        Raises `BrokerUnreachable`, and leaves nothing running, when it does not within `timeout`
        (after the time that connecting itself may take).
        """
        answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
        theirs: tuple[Any, Any] = self.on_connect, self.on_disconnect
        self.on_connect = _first(lambda code: answers.put(code), theirs[0])
        self.on_disconnect = _first(lambda code: answers.put(None), theirs[1])
        try:
            self.reconnect()
            self.loop_start()
            code = answers.get(timeout=timeout)
        except queue.Empty:
            self._give_up("it does not answer")
        except OSError as problem:
            self._give_up(_words(problem))
        else:
            if code is None or code.is_failure:
                self._give_up(f"it answers: {code}".lower() if code else "it hung up")
        finally:
            self.on_connect, self.on_disconnect = theirs

    def stop(self) -> None:
        """Say goodbye and end the thread; what was published and not acknowledged is left."""
        self.disconnect()
        self.loop_stop()

    def loop_stop(self) -> MQTTErrorCode:
        code = super().loop_stop()
        self._reset_sockets()  # also those that woke the thread, which paho leaves open
        return code

    def reconnect(self) -> MQTTErrorCode:
        """paho calls this for every connect, in its own thread: a failure must be an OSError."""
        try:
            now = self._current()
        except MamError as problem:
            raise ConnectionError(problem.message) from problem
        if now.is_embedded and not is_ours(now.port):
            raise ConnectionRefusedError("no broker of ours listens there")
        if now != self._known:
            self._log_in(now)
            self.connect_async(now.host, now.port, KEEPALIVE_SEC)
            self._known = now
        return super().reconnect()

    def _log_in(self, known: Connection) -> None:
        self.username_pw_set(known.username, known.password)

    def _trust(self, known: Connection) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # which wants a certificate of that name
        context.sslsocket_class = _Socket
        try:
            if known.ca_certs:
                context.load_verify_locations(known.ca_certs)
            else:
                context.load_default_certs()
            if known.certfile:
                # A password is given so that nobody is asked for one: a relay has no terminal.
                context.load_cert_chain(known.certfile, known.keyfile, password="")
        except (OSError, ValueError) as problem:
            named = (known.ca_certs, known.certfile, known.keyfile)
            files = ", ".join(filter(None, named)) or "the system's certificates"
            raise ConfigError(f"{files} cannot be used for TLS: {_words(problem)}") from None
        self.tls_set_context(context)

    def _give_up(self, why: str) -> NoReturn:
        self.stop()
        raise BrokerUnreachable(f"the broker {self._known.where} cannot be reached: {why}")


class _Socket(ssl.SSLSocket):
    """Closed when its handshake fails: paho would leave that to the garbage collector."""

    def do_handshake(self, block: bool = False) -> None:
        try:
            super().do_handshake(block)
        except BaseException:
            self.close()
            raise


def new_client(
    connection: Connection | Callable[[], Connection],
    client_id: str | None = None,
    *,
    clean_session: bool = True,
    manual_ack: bool = False,
) -> Client:
    """A client that knows login and TLS, not yet connected.

    With `manual_ack` a message counts as delivered when `Client.ack` says so, not when it came in.
    """
    current = connection if callable(connection) else lambda: connection
    # Looked up before anything is made: paho complains loudly about a client that is half made.
    known = current()
    return Client(known, current, client_id, clean_session=clean_session, manual_ack=manual_ack)


def _first(ours: Callable[[Any], None], theirs: Any) -> Any:
    """A callback of paho's with a reason code: ours hears it, then the one that was set before."""

    def hear(client: Any, userdata: Any, flags: Any, code: Any, properties: Any) -> None:
        ours(code)
        if theirs is not None:
            theirs(client, userdata, flags, code, properties)

    return hear


def _words(problem: Exception) -> str:
    if isinstance(problem, ssl.SSLCertVerificationError):
        return f"its certificate is not believed ({problem.verify_message})"
    known = isinstance(problem, OSError) and problem.strerror
    return (known or str(problem) or type(problem).__name__).lower()
