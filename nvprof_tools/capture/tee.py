"""What the program prints, as it comes: to files of the run folder, and to whoever watches, byte for byte.

Each stream goes untouched into a file of its own. A third file has both, line by line, for a log reader: two writers
never share a line there. The program is never held up: what cannot be written is counted and dropped.
"""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

_CHUNK = 1 << 16
_POLL_MS = 100


class Tee:
    """Two named pipes, read by a thread from :meth:`start` to :meth:`finish`.

    :param folder: where ``stdout.log``, ``stderr.log`` and ``app.log`` are written while the program runs.
    :param echo: descriptors that get each stream too; null: nobody watches.
    """

    def __init__(self, folder: Path, echo: tuple[int, int] | None) -> None:
        self.pipes = (folder / ".stdout.pipe", folder / ".stderr.pipe")
        self.lost_bytes = 0
        self.reason = ""
        self._echo: list[int | None] = [None, None] if echo is None else list(echo)
        self._pending = [b"", b""]
        self._done = threading.Event()
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        # Streams, not documents: half of the output of a program that was killed is what its user needs.
        self._files = [os.open(folder / name, flags, 0o644) for name in ("stdout.log", "stderr.log")]
        self._joined = os.open(folder / "app.log", flags, 0o644)
        self._inputs: list[int] = []
        for pipe in self.pipes:
            pipe.unlink(missing_ok=True)
            os.mkfifo(pipe, 0o600)
            self._inputs.append(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))
        self._thread = threading.Thread(target=self._read, name="tee", daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def finish(self) -> None:
        """Read what is left and close; a process that lives on and holds a pipe open is not waited for."""
        self._done.set()
        self._thread.join()
        for stream in (0, 1):
            self._join(stream, b"", last=True)
        for descriptor in (*self._files, self._joined, *self._inputs):
            os.close(descriptor)
        for pipe in self.pipes:
            pipe.unlink(missing_ok=True)

    def _read(self) -> None:
        poll = select.poll()
        streams = dict(zip(self._inputs, (0, 1), strict=True))
        for descriptor in streams:
            poll.register(descriptor, select.POLLIN)
        while streams:
            ready = poll.poll(_POLL_MS)
            if not ready and self._done.is_set():
                return
            for descriptor, events in ready:
                data = b""
                with suppress(BlockingIOError):
                    data = os.read(descriptor, _CHUNK)
                if data:
                    self._deliver(streams[descriptor], data)
                elif events & select.POLLHUP:
                    poll.unregister(descriptor)
                    del streams[descriptor]

    def _deliver(self, stream: int, data: bytes) -> None:
        watcher = self._echo[stream]
        if watcher is not None:
            try:
                _write(watcher, data)
            except OSError:
                # The watcher went away (`| head`): the run goes on.
                self._echo[stream] = None
        self._keep(self._files[stream], data)
        self._join(stream, data)

    def _join(self, stream: int, data: bytes, *, last: bool = False) -> None:
        whole, newline, rest = (self._pending[stream] + data).rpartition(b"\n")
        if last and rest:
            whole, newline, rest = whole + newline + rest, b"\n", b""
        self._pending[stream] = rest
        if whole or newline:
            self._keep(self._joined, whole + newline)

    def _keep(self, descriptor: int, data: bytes) -> None:
        try:
            _write(descriptor, data)
        except OSError as error:
            self.lost_bytes += len(data)
            self.reason = error.strerror or "write error"


def _write(descriptor: int, data: bytes, write: Callable[[int, bytes], int] = os.write) -> None:
    while data:
        data = data[write(descriptor, data) :]
