"""Both servers with the configuration that is shipped: TLS, one user a role, and everybody else refused."""

import asyncio
import shutil
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from deploy.credentials import make_credentials
from deploy.privileges.nats_accounts import nats_accounts
from deploy.privileges.roles import Cast, ServerRole
from tasklore.runtime.access import ServerCredentials
from tasklore.runtime.servers.claims import HOST, free_port
from tasklore.runtime.servers.embedded import NatsServer, ValkeyServer

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
#: A user of the tests alone, and its password: on Valkey it may ask what others may do, and nothing else.
EXAMINER = "examiner"
#: Bytes passed on at once between a client and Valkey.
_CHUNK = 64 * 1024


class GuardedNats(NatsServer):
    """A nats-server on `deploy/nats/nats.conf`, told the rest by its environment as in a container."""

    scheme = "tls"

    def __init__(self, data_dir: Path, credentials: Path) -> None:
        # `env` becomes the server, with variables of its own.
        super().__init__(data_dir, binary=Path("/usr/bin/env"))
        self._credentials = credentials
        self.monitor_port = free_port()
        self.configuration = config("nats.conf")

    def command(self, port: int) -> list[str]:
        """Return the variables, then the server with the shipped file."""
        server = next(path for path in self.candidates() if path.is_file())
        return [
            *(f"{name}={value}" for name, value in self.variables(port).items()),
            str(server),
            "-c",
            str(self.configuration),
        ]

    def variables(self, port: int) -> Mapping[str, str]:
        """Return what its configuration is told by its environment."""
        return nats_variables(self._credentials, self.data_dir, port, self.monitor_port)

    async def probe(self, port: int) -> None:
        """Return when the server introduces itself, which it does before TLS begins."""
        reader, writer = await asyncio.open_connection(HOST, port)
        try:
            if b'"tls_required":true' not in await reader.readline():
                raise EOFError("not our server")
        finally:
            writer.close()


class GuardedNode(GuardedNats):
    """One of several, on `deploy/nats/cluster.conf` with routes on this machine."""

    def __init__(
        self, data_dir: Path, credentials: Path, *, place: int, route: int
    ) -> None:
        super().__init__(data_dir, credentials)
        self._place = place
        self._route = route

    def variables(self, port: int) -> Mapping[str, str]:
        """Return those of this node."""
        return {
            **super().variables(port),
            "TASKLORE_NATS_NAME": f"nats-{self._place}",
            "TASKLORE_NATS_ROUTES_LISTEN": f"{HOST}:{self._route}",
        }


class GuardedValkey(ValkeyServer):
    """A valkey-server on `deploy/valkey/valkey.conf` and the list of users."""

    def __init__(self, data_dir: Path, users: Path) -> None:
        super().__init__(data_dir)
        self._users = users

    def command(self, port: int) -> list[str]:
        """Return the shipped file, and what differs from place to place."""
        place = [
            "--bind",
            HOST,
            "--port",
            str(port),
            "--dir",
            str(self.data_dir),
            "--aclfile",
            str(self._users),
        ]
        return [str(DEPLOY / "valkey" / "valkey.conf"), *place]

    async def probe(self, port: int) -> None:
        """Return when it refuses to tell a stranger anything."""
        reader, writer = await asyncio.open_connection(HOST, port)
        try:
            writer.write(b"PING\r\n")
            if not (await reader.readline()).startswith(b"-NOAUTH"):
                raise EOFError("not ready")
        finally:
            writer.close()


class Guarded:
    """Both servers, their credentials in `folder`, and what a process of each role is told."""

    def __init__(self, folder: Path, cast: Cast, *, examined: bool = False) -> None:
        self.roles: dict[str, ServerRole] = {role.name: role for role in cast.roles()}
        self.folder = folder / "credentials"
        make_credentials(self.folder, tuple(self.roles.values()))
        users = self.folder / "users.acl"
        with users.open("a", encoding="utf-8") as file:
            file.write(
                f"user {EXAMINER} on >{EXAMINER} resetkeys resetchannels -@all +acl|dryrun\n"
            )
        self.nats = GuardedNats(folder / "nats", self.folder)
        if cast != Cast() or examined:
            self.nats.configuration = _with_users(
                folder / "conf", tuple(self.roles.values()), examined=examined
            )
        self.valkey = GuardedValkey(folder / "valkey", users)
        self.tls_port = free_port()

    @property
    def nats_url(self) -> str:
        """Where NATS listens, with TLS."""
        return self.nats.url

    @property
    def redis_url(self) -> str:
        """Where Valkey is reached with TLS, its user and password left to the role."""
        return f"rediss://localhost:{self.tls_port}/0"

    def settings(self, role: str) -> dict[str, str]:
        """Return the settings of a process of *role*."""
        return {
            "role": role,
            "secrets_dir": str(self.folder / role),
            "redis_url": self.redis_url,
            "provision": "auto" if role == "bootstrap" else "never",
        }

    def environment(self, role: str) -> dict[str, str]:
        """Return the environment of a process of *role*."""
        return {
            "TASKLORE_NATS_URL": self.nats_url,
            **{
                f"TASKLORE_{name.upper()}": value
                for name, value in self.settings(role).items()
            },
        }

    def access(self, role: str) -> ServerCredentials:
        """Return what *role* shows the servers."""
        own = self.folder / role
        authority = self.folder / "tls" / "ca.crt"
        return ServerCredentials(
            role, own / "nats.nkey", authority, authority, own / "valkey.password"
        )

    def password(self, role: str) -> str:
        """Return the password of *role* for Valkey."""
        return (self.folder / role / "valkey.password").read_text("utf-8")


@contextmanager
def guarded(
    folder: Path, cast: Cast | None = None, *, examined: bool = False
) -> Iterator[Guarded]:
    """Run both servers until the block ends; more agents than are shipped need users of a *cast* of their own.

    *examined* adds the one user in the account of the streams, who sees and may do all that there is: `EXAMINER`.
    """
    pair = Guarded(folder, cast or Cast(), examined=examined)
    try:
        asyncio.run(pair.nats.start())
        asyncio.run(pair.valkey.start())
        with _tls_before(pair.valkey.port, pair.tls_port, pair.folder / "tls"):
            yield pair
    finally:
        asyncio.run(pair.nats.stop())
        asyncio.run(pair.valkey.stop())


class GuardedCluster:
    """NATS servers alone, one or more that are one cluster, with the users of a cast."""

    def __init__(self, folder: Path, cast: Cast, nodes: int) -> None:
        roles = cast.roles()
        self.folder = folder / "credentials"
        make_credentials(self.folder, roles)
        routes = [free_port() for _ in range(nodes)]
        configuration = _with_users(folder / "conf", roles, examined=False)
        if nodes > 1:
            configuration = _with_routes(configuration.parent, routes)
        self.nodes = [
            GuardedNode(folder / f"nats-{place}", self.folder, place=place, route=route)
            for place, route in enumerate(routes)
        ]
        for node in self.nodes:
            node.configuration = configuration

    @property
    def nats_urls(self) -> list[str]:
        """The address of each node."""
        return [node.url for node in self.nodes]

    def environment(self, role: str) -> dict[str, str]:
        """Return the environment of a process of *role*."""
        return {
            "TASKLORE_NATS_URL": ",".join(self.nats_urls),
            "TASKLORE_ROLE": role,
            "TASKLORE_SECRETS_DIR": str(self.folder / role),
        }


@contextmanager
def guarded_cluster(
    folder: Path, cast: Cast, *, nodes: int
) -> Iterator[GuardedCluster]:
    """Run *nodes* NATS servers with the users of *cast* until the block ends."""
    cluster = GuardedCluster(folder, cast, nodes)

    async def start() -> None:
        await asyncio.gather(*(node.start() for node in cluster.nodes))

    async def stop() -> None:
        await asyncio.gather(*(node.stop() for node in cluster.nodes))

    try:
        asyncio.run(start())
        yield cluster
    finally:
        asyncio.run(stop())


def _with_routes(folder: Path, routes: list[int]) -> Path:
    """Return the shipped configuration of a cluster in *folder*, with *routes* in place of the names of its nodes."""
    text = config("cluster.conf").read_text("utf-8")
    for place, route in enumerate(routes):
        text = text.replace(f"tls://nats-{place}:6222", f"tls://localhost:{route}")
    (folder / "cluster.conf").write_text(text, "utf-8")
    return folder / "cluster.conf"


def _with_users(folder: Path, roles: tuple[ServerRole, ...], *, examined: bool) -> Path:
    """Return the shipped configuration with more users: the file that it includes lies beside it."""
    folder.mkdir()
    accounts = nats_accounts(roles)
    if examined:
        user = f"jetstream: enabled\n    users: [{{user: {EXAMINER}, password: {EXAMINER}}}]\n"
        accounts = accounts.replace("jetstream: enabled\n", user, 1)
    (folder / "accounts.conf").write_text(accounts, "utf-8")
    return Path(shutil.copy(config("nats.conf"), folder))


def config(name: str) -> Path:
    """Return a shipped configuration of nats-server."""
    return DEPLOY / "nats" / name


def nats_variables(
    credentials: Path, store: Path, port: int = 4222, monitor: int = 8222
) -> Mapping[str, str]:
    """Return what the configuration of nats-server is told by its environment."""
    keys = dict(
        line.split("=", 1)
        for line in (credentials / "nats.env").read_text("utf-8").splitlines()
    )
    tls = credentials / "tls"
    return {
        **keys,
        "TASKLORE_NATS_NAME": "nats-0",
        "TASKLORE_NATS_LISTEN": f"{HOST}:{port}",
        "TASKLORE_NATS_MONITOR": f"{HOST}:{monitor}",
        "TASKLORE_NATS_ROUTES_LISTEN": f"{HOST}:6222",
        "TASKLORE_NATS_STORE": str(store),
        "TASKLORE_NATS_CERT": str(tls / "nats.crt"),
        "TASKLORE_NATS_KEY": str(tls / "nats.key"),
        "TASKLORE_NATS_CA": str(tls / "ca.crt"),
    }


@contextmanager
def _tls_before(port: int, tls_port: int, tls: Path) -> Iterator[None]:
    """Speak TLS on *tls_port* for a server that was built without: the one that comes with the tests was."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tls / "valkey.crt", tls / "valkey.key")
    started = threading.Event()
    loop = asyncio.new_event_loop()

    async def pass_on(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            while chunk := await reader.read(_CHUNK):
                writer.write(chunk)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner_reader, inner_writer = await asyncio.open_connection(HOST, port)
        await asyncio.gather(
            pass_on(reader, inner_writer), pass_on(inner_reader, writer)
        )

    async def listen() -> None:
        async with await asyncio.start_server(serve, HOST, tls_port, ssl=context):
            started.set()
            await stopped.wait()

    stopped = asyncio.Event()
    thread = threading.Thread(
        target=lambda: asyncio.Runner(loop_factory=lambda: loop).run(listen()),
        daemon=True,
    )
    thread.start()
    started.wait(10)
    try:
        yield
    finally:
        loop.call_soon_threadsafe(stopped.set)
        thread.join(10)
