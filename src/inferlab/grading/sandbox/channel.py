"""Sends and receives messages of wire data over a Unix socket, each until a deadline."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable
from typing import Any

from inferlab.lab.checks import wire

_HEADER = struct.Struct(">Q")


class Closed(ConnectionError):
    """The other end is gone."""


class Overdue(TimeoutError):
    """Nothing arrived in time."""


class TooLarge(ValueError):
    """The other end announced a message above the limit; the stream cannot be used any more."""


class Channel:
    """One end of the connection: `send` and `recv` tuples of wire data.

    Args:
        sock: a connected stream socket.
        limits: the codec's limits; a message larger than `limits.bytes` is refused before it is read.
    """

    def __init__(self, sock: socket.socket, limits: wire.WireLimits) -> None:
        self.sock, self.limits = sock, limits
        self.reading = False
        self.received = 0  # bytes, in all

    def send(self, message: tuple, export: Callable | None = None, deadline: float | None = None) -> None:
        """Encode and send a message.

        Raises:
            wire.WireError: if a value may not cross; then nothing was sent.
            Overdue, Closed: if it could not be sent.
        """
        self.reading = False
        body = wire.encode(message, export, self.limits)
        self._timeout(deadline)
        try:
            self.sock.sendall(_HEADER.pack(len(body)) + body)
        except TimeoutError:
            raise Overdue from None
        except OSError as error:
            raise Closed(str(error)) from None

    def recv(self, resolve: Callable | None = None, deadline: float | None = None) -> Any:
        """The next message.

        Raises:
            Closed, Overdue, TooLarge: if there is none; the connection cannot be used any more.
            wire.WireError: if it is not wire data; the next message can be read.
        """
        self.reading = True
        (length,) = _HEADER.unpack(self._exactly(8, deadline))
        if length > self.limits.bytes:
            raise TooLarge(f"a message of {length} bytes; at most {self.limits.bytes} may cross")
        self.received += length
        return wire.decode(self._exactly(length, deadline), resolve, self.limits)

    def _exactly(self, number: int, deadline: float | None) -> bytes:
        parts = []
        while number:
            self._timeout(deadline)
            try:
                part = self.sock.recv(min(number, 1 << 20))
            except TimeoutError:
                raise Overdue from None
            except OSError as error:
                raise Closed(str(error)) from None
            if not part:
                raise Closed("end of stream")
            parts.append(part)
            number -= len(part)
        return b"".join(parts)

    def _timeout(self, deadline: float | None) -> None:
        if deadline is None:
            self.sock.settimeout(None)
            return
        left = deadline - time.monotonic()
        if left <= 0:
            raise Overdue
        self.sock.settimeout(left)
