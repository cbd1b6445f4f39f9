"""`covey.toml`: the configuration of a cluster as a file, the same file at every daemon.

In:        a path.  Out: a `Configuration`, checked; or a ConfigError that names file, line and remedy.
Not here:  what the values mean (config.py, docs/configuration.md).
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

import msgspec

from .cluster import Cluster, DaemonConfig, SiteLink, ipv4, is_loopback, multicast_address
from .config import PRESETS, Settings
from .errors import ConfigError

Preset = Literal["loopback", "lan", "wan"]
Checked = TypeVar("Checked")


class DaemonTable(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A daemon as it is written: its site by name, or by number where sites have no names."""

    name: str
    site: int | str
    host: str = "127.0.0.1"
    port: int = 0
    clients: str | None = None
    gateway: bool = True


class SiteTable(msgspec.Struct, forbid_unknown_fields=True):
    """A site as it is written; its place in the file is its number."""

    name: str


class LinkTable(msgspec.Struct, forbid_unknown_fields=True):
    """A link between two sites as it is written."""

    between: tuple[int | str, int | str]
    cost: int = 1


class Document(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The file as it is written."""

    cluster: str
    daemon: list[DaemonTable]
    site: list[SiteTable] = []
    link: list[LinkTable] = []
    preset: Preset = "loopback"
    allow_unsealed: bool = False
    multicast: str | None = None
    settings: dict[str, Any] = {}


class Configuration(msgspec.Struct, frozen=True):
    """Everything a daemon needs to know."""

    path: Path
    cluster: Cluster
    settings: Settings
    allow_unsealed: bool

    @property
    def unsealed_hosts(self) -> list[str]:
        """Hosts that others can reach, where datagrams are not protected."""
        return sorted({daemon.host for daemon in self.cluster.daemons if not is_loopback(daemon.host)})


def load(path: Path) -> Configuration:
    """Read and check a configuration file."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigError(f"{path} does not exist: make one with `covey init`, or name yours with --config") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from None
    return parse(text, path)


def parse(text: str, path: Path) -> Configuration:
    try:
        raw = tomllib.loads(text)
    except ValueError as error:  # Of tomllib, or of a number of thousands of digits.
        raise ConfigError(f"{path}: this is not TOML: {error}") from None
    document = _checked(raw, Document, text, path, "")
    _check_settings_names(document, text, path)
    _check_multicast(document, text, path)
    base = PRESETS[document.preset](len(document.daemon))
    fields = msgspec.structs.asdict(base) | document.settings
    try:
        settings = _checked(fields, Settings, text, path, "settings")
        cluster = _cluster(document, text, path)
    except ConfigError as error:
        prefix = "" if str(error).startswith(str(path)) else f"{path}{_line_of_rule(error, document, text)}: "
        raise ConfigError(f"{prefix}{error}{'' if error.location else _in_force(str(error), fields)}") from None
    configuration = Configuration(path, cluster, settings, document.allow_unsealed)
    _check_hosts(configuration, text)
    _check_clients(configuration, text)
    _check_addresses(configuration, text)
    return configuration


def _cluster(document: Document, text: str, path: Path) -> Cluster:
    names = [site.name for site in document.site]
    for index, name in enumerate(names):
        if name in names[:index]:
            line = line_of(text, f"site[{index}].name", "name")
            raise ConfigError(f"{path}{line}: two sites are called {name!r}: give each its own name")

    def number(written: int | str, field: str) -> int:
        try:
            return _site(written, names)
        except ConfigError as error:  # Looking for a line takes long: only where something is wrong.
            raise ConfigError(f"{path}{line_of(text, field, field.rpartition('.')[2])}: {error}") from None

    daemons = tuple(
        DaemonConfig(one.name, number(one.site, f"daemon[{index}].site"), one.host, one.port, one.clients, one.gateway)
        for index, one in enumerate(document.daemon)
    )
    links = []
    for index, link in enumerate(document.link):
        one, other = sorted(number(site, f"link[{index}].between") for site in link.between)
        links.append(SiteLink(one, other, link.cost))
    return Cluster(document.cluster, daemons, document.multicast, tuple(names), tuple(links))


def _site(written: int | str, names: list[str]) -> int:
    """Its number. ConfigError: the file has no site of that name."""
    if isinstance(written, int) and not names:
        return written
    if isinstance(written, str) and written in names:
        return names.index(written)
    known = f"write one of {', '.join(names)}" if names else "write its number, or list the sites: [[site]]"
    raise ConfigError(f"there is no site {written!r}: {known}")


def _line_of_rule(error: ConfigError, document: Document, text: str) -> str:
    """Where the file says what breaks a rule: what the error names, a setting, or the name given twice."""
    if error.location:
        return line_of(text, error.location, error.location.rpartition(".")[2])
    for name in re.findall(r"\w+", str(error)):
        if name in document.settings:
            return line_of(text, f"settings.{name}", name)
    seen: set[str] = set()
    for index, daemon in enumerate(document.daemon):
        if daemon.name in seen:
            return line_of(text, f"daemon[{index}].name", "name")
        seen.add(daemon.name)
    return ""


def _in_force(rule: str, fields: dict[str, Any]) -> str:
    """The values of the settings that a rule speaks of."""
    named = [name for name in dict.fromkeys(re.findall(r"\w+", rule)) if name in fields]
    values = ", ".join(f"{name} is {fields[name]}" for name in named)
    remedy = "change it" if len(named) == 1 else "change one of them"
    return f"; {values}: {remedy}" if named else ""


def _checked(raw: Any, table_type: type[Checked], text: str, path: Path, table: str) -> Checked:
    try:
        return msgspec.convert(raw, table_type)
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at `$")
        location = f"{table}{where.rstrip('`')}".lstrip(".")
        name = re.search(r"field `(\w+)`", what)
        line = line_of(text, location, name.group(1) if name else "")
        raise ConfigError(
            f"{path}{line}: {location + ': ' if location else ''}{what}{_remedy(what, location)}"
        ) from None


def _remedy(what: str, location: str = "") -> str:
    if location == "preset":
        return f"; write one of {', '.join(get_args(Preset))}"
    if "unknown field" in what:
        return "; docs/configuration.md lists every field: correct the name or remove it"
    if "missing required field" in what:
        return "; add it, or compare with what `covey init` writes"
    return "; docs/configuration.md says what it may be"


def _check_settings_names(document: Document, text: str, path: Path) -> None:
    for name in document.settings:
        if name not in Settings.__struct_fields__:
            line = line_of(text, f"settings.{name}", name)
            raise ConfigError(f"{path}{line}: settings has no field {name!r}{_remedy('unknown field')}")


def _check_multicast(document: Document, text: str, path: Path) -> None:
    if document.multicast is None:
        return
    where = f"{path}{line_of(text, '', 'multicast')}"
    try:
        multicast_address(document.multicast)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None
    if len({is_loopback(daemon.host) for daemon in document.daemon}) > 1:
        raise ConfigError(
            f"{where}: multicast stays on one network, and these daemons are on loopback and elsewhere: "
            "give them all hosts of one network, or remove `multicast`"
        )


def _check_hosts(configuration: Configuration, text: str) -> None:
    """Until datagrams are sealed, whoever can reach a port can speak for a daemon."""
    for index, daemon in enumerate(configuration.cluster.daemons):
        field, problem = _host_problem(daemon, configuration.allow_unsealed)
        if problem:
            raise ConfigError(f"{_where(configuration, text, index, field)} has {problem}")


def _host_problem(daemon: DaemonConfig, allow_unsealed: bool) -> tuple[str, str]:
    """Which field is wrong, and what to write; empty if neither is."""
    if not 0 < daemon.port < 65_536:
        return "port", f"port {daemon.port}: write 1 to 65535"
    numbers = ipv4(daemon.host) or (0,)
    if daemon.host != "localhost" and not 0 < numbers[0] < 224:
        return "host", f"host {daemon.host!r}: write the IPv4 address of one machine"
    if not is_loopback(daemon.host) and not allow_unsealed:
        return "host", (
            f"host {daemon.host!r}, which others can reach, and datagrams are not sealed yet: write 127.0.0.1, or "
            "`allow_unsealed = true` if you trust everyone on that network"
        )
    return "", ""


def _check_clients(configuration: Configuration, text: str) -> None:
    """Streams of clients are not protected yet either."""
    for index, daemon in enumerate(configuration.cluster.daemons):
        if daemon.clients is None:
            continue
        if problem := _clients_problem(daemon.clients, configuration.allow_unsealed):
            raise ConfigError(f"{_where(configuration, text, index, 'clients')} {problem}")


def _clients_problem(clients: str, allow_unsealed: bool) -> str:
    host, _, port = clients.rpartition(":")
    if ipv4(host) is None or not port.isdecimal() or not 0 < int(port) < 65_536:
        return f"has clients {clients!r}: write an IPv4 address and a port, 127.0.0.1:4803"
    if not is_loopback(host) and not allow_unsealed:
        return (
            f"lets clients in at {host}, which others can reach, and their streams are not sealed yet: write "
            "127.0.0.1, or `allow_unsealed = true` if you trust everyone on that network"
        )
    return ""


def _where(configuration: Configuration, text: str, index: int, field: str) -> str:
    """Looking for a line takes as long as the file is: it is asked for only when something is wrong with it."""
    line = line_of(text, f"daemon[{index}].{field}", field)
    return f"{configuration.path}{line}: daemon {configuration.cluster.daemons[index].name!r}"


def _check_addresses(configuration: Configuration, text: str) -> None:
    """Two daemons behind one address could not be told apart."""
    for field in ("port", "clients"):
        seen: dict[object, str] = {}
        for index, daemon in enumerate(configuration.cluster.daemons):
            address = daemon.address if field == "port" else daemon.clients
            if address is not None and address in seen:
                where = _where(configuration, text, index, field)
                raise ConfigError(f"{where} has the address of {seen[address]!r}: give it another {field}")
            seen[address] = daemon.name


def line_of(text: str, location: str, name: str) -> str:
    r"""Where in the file a value stands, as `:LINE`; empty if it cannot be told.

    >>> line_of('cluster = "x"\n[[daemon]]\nname = "a"\n[[daemon]]\nport = 1\n', 'daemon[1].port', '')
    ':5'
    """
    keys = re.findall(r"\w+", location)
    table, index = (keys[0], int(keys[1]) if len(keys) > 1 and keys[1].isdigit() else 0) if keys else ("", 0)
    wanted = name or (keys[-1] if keys else "")
    headers = [at for at, line in enumerate(text.splitlines()) if re.match(rf"\s*\[+{table}\]+", line)] if table else []
    if table and not headers:  # Written in one line: `link = [{between = ["east", "west"]}]`.
        headers = [at for at, line in enumerate(text.splitlines()) if re.match(rf"\s*{table}\s*=", line)][:1]
    start = headers[index] if index < len(headers) else headers[0] if headers else 0
    for at, line in enumerate(text.splitlines()[start:], start=start):
        if at > start and headers and line.lstrip().startswith("["):
            break
        if re.match(rf"\s*{wanted}\s*=", line):
            return f":{at + 1}"
    return f":{start + 1}" if headers else ""


def render(cluster: Cluster, preset: Preset) -> str:
    """A file that `load` reads back; asking for hosts that others can reach is agreeing to unsealed datagrams."""
    lines = [
        "# The configuration of a Covey cluster: the same file at every daemon.",
        f"cluster = {_quoted(cluster.name)}",
        f'preset = "{preset}"        # loopback, lan or wan: how patient daemons are; see docs/configuration.md',
        "",
        "# [settings]              # any single setting, for example:",
        "# peer_timeout_ms = 600",
    ]
    if cluster.multicast is not None:
        lines.insert(3, f'multicast = "{cluster.multicast}"   # a datagram for several daemons goes there, once')
    if not all(is_loopback(daemon.host) for daemon in cluster.daemons):
        lines.insert(3, "allow_unsealed = true     # datagrams are readable and forgeable for everyone on that network")
    for name in cluster.site_names:
        lines += ["", "[[site]]", f"name = {_quoted(name)}"]
    for one, other, cost in cluster.links:
        between = f"between = [{_site_text(cluster, one)}, {_site_text(cluster, other)}]"
        lines += ["", "[[link]]", between, f"cost = {cost}"]
    for daemon in cluster.daemons:
        lines += ["", "[[daemon]]", f"name = {_quoted(daemon.name)}", f"site = {_site_text(cluster, daemon.site)}"]
        lines += [] if daemon.gateway else ["gateway = false"]
        lines += [f'host = "{daemon.host}"', f"port = {daemon.port}"]
        lines += [f'clients = "{daemon.clients}"'] if daemon.clients is not None else []
    return "\n".join(lines) + "\n"


def _site_text(cluster: Cluster, site: int) -> str:
    return _quoted(cluster.site_name(site)) if cluster.site_names else str(site)


def _quoted(name: str) -> str:
    r"""Names are printable, and of those characters JSON and TOML escape the same.

    >>> print(_quoted('a"b'))
    "a\"b"
    """
    return msgspec.json.encode(name).decode()
