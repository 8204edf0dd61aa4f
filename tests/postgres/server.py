"""A PostgreSQL server for tests: started without root, stopped, killed and started again; and a way to cut it off."""

import atexit
import importlib.util
import os
import select
import shutil
import socket
import tempfile
import threading
import warnings
from contextlib import contextmanager, suppress
from pathlib import Path


def is_installed():
    return importlib.util.find_spec("pgserver") is not None


class Server:
    """One server with its data in a folder of its own."""

    def __enter__(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about folders of the operating system
            import pgserver

        self.folder = Path(tempfile.mkdtemp(prefix="pg"))  # in a short path: a socket's may have 107 letters
        self._server = pgserver.get_server(self.folder, cleanup_mode="stop")
        self.address = f"postgresql://postgres@/postgres?host={self.folder}"
        return self

    def __exit__(self, *_):
        self.control("-m", "immediate", "-w", "stop")  # its data is deleted anyway
        atexit.unregister(self._server._cleanup)  # which would look for the process that was started first
        shutil.rmtree(self.folder, ignore_errors=True)

    def connected(self):
        """A connection of a superuser."""
        import psycopg

        return psycopg.connect(self.address, autocommit=True)

    def restart(self, mode="fast"):
        """Stop (`fast`), or crash (`immediate`), and start again."""
        self.control("-m", mode, "-w", "stop")
        self.start()

    def start(self):
        self.control("-w", "-o", "-h ''", "-o", f"-k {self.folder}", "-l", str(self.folder / "log"), "start")

    def control(self, *arguments):
        from pgserver import _commands

        _commands.pg_ctl(list(arguments), pgdata=self.folder, user=self._server.system_user, timeout=60)


class Cable:
    """A connection to the server that can be pulled: it swallows what is sent, as a network that is cut off does."""

    def __init__(self, server):
        self.folder = Path(tempfile.mkdtemp(prefix="cable"))
        self.address = f"postgresql://postgres@/postgres?host={self.folder}"
        self._target = str(server.folder / ".s.PGSQL.5432")
        self._intact = threading.Event()
        self._intact.set()
        self._closing = False
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(self.folder / ".s.PGSQL.5432"))
        self._listening.listen()
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    @contextmanager
    def pulled(self):
        self._intact.clear()
        try:
            yield
        finally:
            self._intact.set()

    def close(self):
        self._closing = True
        self._intact.set()
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for thread in self._threads:
            thread.join(5)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _accept(self):
        while not self._closing:
            with suppress(OSError):
                near, _ = self._listening.accept()
                thread = threading.Thread(target=self._carry, args=(near,), daemon=True)
                self._threads.append(thread)
                thread.start()

    def _carry(self, near):
        with near, socket.socket(socket.AF_UNIX) as far:
            try:
                far.connect(self._target)
                while not self._closing:
                    ready, _, _ = select.select([near, far], [], [], 0.1)
                    self._intact.wait()
                    for source in ready:
                        data = os.read(source.fileno(), 1 << 16)
                        if not data:
                            return
                        (far if source is near else near).sendall(data)
            except OSError:
                return
