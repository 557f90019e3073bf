"""PgBouncer for tests: in transaction mode, with few connections, so that all share them."""

from __future__ import annotations

import shutil
import socket
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from goncordia_conformance.backends import Backend
from goncordia_conformance.servers.guard import shared
from goncordia_conformance.servers.process import free_port, serve, unprivileged_user

__all__ = ["pgbouncer_backend", "run_pgbouncer"]

ASK = b"\x00\x00\x00\x08\x04\xd2\x16\x2f"
"""A client's first words in PostgreSQL's protocol: whether the server can do TLS."""

CONFIG = """\
[databases]
* = host={host} port={port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listen}
unix_socket_dir =
auth_type = trust
auth_file = {users}
admin_users = {admin}
pool_mode = transaction
default_pool_size = 10
max_client_conn = 1000
max_db_connections = 0
ignore_startup_parameters = extra_float_digits
"""


@contextmanager
def run_pgbouncer(upstream: str) -> Generator[str, None, None]:
    """Run PgBouncer before a server that trusts whoever connects.

    Args:
        upstream: the server's DSN; its databases are all there, under their names.

    Raises:
        NotHereError: there is no PgBouncer on this machine.
        RuntimeError: it did not start; with its last words.
    """
    server, port = urlsplit(upstream), free_port()
    home = Path(tempfile.mkdtemp(prefix="goncordia-pgbouncer-"))
    try:
        users, config = home / "users", home / "pgbouncer.ini"
        name = server.username or "postgres"
        users.write_text(f'"{name}" "{server.password or ""}"\n')
        config.write_text(
            CONFIG.format(
                host=server.hostname, port=server.port, listen=port, users=users, admin=name
            )
        )
        user = unprivileged_user("pgbouncer", "postgres")
        if user is not None:
            for path in (home, users, config):
                shutil.chown(path, user)
        # Where Debian has it, which an ordinary user's PATH leaves out.
        binary = shutil.which("pgbouncer") or "/usr/sbin/pgbouncer"
        command = [binary, str(config)]
        with serve(command, partial(_answers, port), log=home / "log", user=user):
            yield f"postgresql://{name}@127.0.0.1:{port}{server.path}"
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _answers(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
            connection.sendall(ASK)
            return connection.recv(1) in {b"N", b"S"}
    except OSError:
        return False


def pgbouncer_backend(upstream: str) -> Backend:
    """PgBouncer as a backend of tests, named ``pgbouncer``."""
    start = partial(run_pgbouncer, upstream)
    return Backend("pgbouncer", server=partial(shared, start, "pgbouncer"))
