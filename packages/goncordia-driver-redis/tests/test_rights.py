"""Users with few rights, TLS, Unix sockets."""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
import redis.asyncio
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from goncordia.driver import NewJob, Wake
from goncordia.errors import ConfigurationError, DriverUnavailableError
from goncordia.ids import new_session_id
from goncordia_conformance.servers.redis import RedisServer
from goncordia_driver_redis import RedisDriver

NewJobs = Callable[..., NewJob]
Hearing = Callable[..., AbstractAsyncContextManager[Any]]
Servers = Callable[..., AbstractContextManager[RedisServer]]

RIGHTS = (
    "+evalsha", "+script|load", "+ssubscribe", "+ping", "+spublish", "+time", "+type", "+info",
    "+@string", "+@hash", "+@list", "+@set", "+@sortedset", "+del", "+unlink", "+exists",
    "+expire", "+pexpire", "+pexpireat", "+ttl", "+pttl",
)  # fmt: skip


async def test_rights_that_suffice(server: RedisServer, new_job: NewJobs, hearing: Hearing) -> None:
    """Those that the guide names."""
    server.ask(
        "ACL", "SETUSER", "app", "on", ">pw", "resetkeys", "~{jobs}:*", "resetchannels",
        "&{jobs}:wake", "-@all", *RIGHTS,
    )  # fmt: skip
    url = server.url.replace("//", "//app:pw@")
    async with RedisDriver(url, prefix="jobs") as driver:
        await driver.migrate()
        await driver.ready()
        executor, session = driver.executor(), new_session_id()
        await executor.session_open(session, "w", 60)
        async with RedisDriver(server.url, prefix="jobs") as admin, hearing(driver, admin) as ears:
            (result,) = driver.sync_executor().insert_many([new_job()])
            assert result.status == "INSERTED"
            assert await ears.next() == Wake("jobs", "default", 0.0)
        heart = driver.heartbeater()
        assert heart is not None
        assert heart.beat(session, 60).held
        heart.close()
        found = [each.message for each in await driver.check()]
        assert all("persistence" in message for message in found)


@pytest.mark.parametrize(
    ("rights", "says"),
    [
        (["~*", "-@all", "+ping"], "evalsha"),
        (["resetkeys", "~other:*", "+@all"], "key"),
    ],
)
async def test_rights_that_are_missing(
    server: RedisServer, new_job: NewJobs, rights: list[str], says: str
) -> None:
    async with RedisDriver(server.url) as driver:
        await driver.migrate()
    server.ask("ACL", "SETUSER", "app", "on", ">pw", *rights)
    async with RedisDriver(server.url.replace("//", "//app:pw@")) as driver:
        with pytest.raises(ConfigurationError) as failed:
            await driver.executor().insert_many([new_job()])
        assert "its user lacks a right (NOPERM" in str(failed.value)
        assert says in str(failed.value)
        assert "acl.md" in str(failed.value)


# ---------------------------------------------------------------- TLS


def certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 that signs itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]),
            critical=False,
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    files = folder / "cert.pem", folder / "key.pem"
    files[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    files[1].write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return files


async def test_tls(hearing: Hearing, tmp_path: Path, new_job: NewJobs, a_server: Servers) -> None:
    from goncordia_conformance.servers.process import free_port

    cert, key = certificate(tmp_path)
    port = free_port()
    settings = {
        "tls_port": str(port),
        "tls_cert_file": str(cert),
        "tls_key_file": str(key),
        "tls_ca_cert_file": str(cert),
        "tls_auth_clients": "no",
    }
    with a_server(**settings):
        url = f"rediss://127.0.0.1:{port}"
        async with RedisDriver(f"{url}?ssl_ca_certs={cert}") as driver:
            await driver.migrate()
            await driver.ready()
            await driver.executor().insert_many([new_job()])
            driver.sync_executor().insert_many([new_job()])
            async with hearing(driver) as ears:
                await driver.executor().queue_pause("q")
                assert await ears.next() == Wake("queue", "q")
        client = redis.asyncio.Redis(
            host="127.0.0.1", port=port, ssl=True, ssl_ca_certs=str(cert), decode_responses=True
        )
        async with RedisDriver(client) as driver:
            await driver.executor().insert_many([new_job()])
            driver.sync_executor().insert_many([new_job()])
        await client.aclose()
        with pytest.raises(DriverUnavailableError, match="certificate verify failed"):
            await RedisDriver(url).open()
        with pytest.raises(DriverUnavailableError, match=r"TLS\? Then the scheme is rediss"):
            await RedisDriver(f"redis://127.0.0.1:{port}").open()
        with pytest.raises(DriverUnavailableError, match=r"TLS\? Then the scheme is rediss"):
            RedisDriver(f"redis://127.0.0.1:{port}").sync_executor().now()


async def test_a_unix_socket(tmp_path: Path, new_job: NewJobs, a_server: Servers) -> None:
    path = tmp_path / "r.sock"
    with a_server(unixsocket=str(path)):
        client = redis.asyncio.Redis(unix_socket_path=str(path), db=1)
        for given in (f"redis+unix://{path}", client):
            async with RedisDriver(given) as driver:
                await driver.migrate()
                await driver.ready()
                await driver.executor().insert_many([new_job()])
                driver.sync_executor().insert_many([new_job()])
        await client.aclose()
        with pytest.raises(DriverUnavailableError, match="could not connect to /no/such"):
            await RedisDriver("redis+unix:///no/such").open()
