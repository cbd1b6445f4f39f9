"""The configuration: what all daemons must agree on, and what is refused, with the line and a remedy."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from covey import config_file
from covey.cluster import Cluster, DaemonConfig, SiteLink, is_loopback, many_sites, one_site
from covey.config import BYTES_MAX, WAITING_BYTES, Settings, digest, lan, loopback
from covey.config_file import parse, render
from covey.errors import ConfigError

FILE = Path("covey.toml")
MULTICAST = "239.192.77.1:4800"


def two(*hosts: str, multicast: str | None = None) -> Cluster:
    named = zip("abcdefgh", hosts or ("127.0.0.1", "127.0.0.1"), strict=False)
    daemons = tuple(DaemonConfig(name, 0, host, 4801 + at) for at, (name, host) in enumerate(named))
    return Cluster("x", daemons, multicast)


# --- the digests


def test_every_setting_is_part_of_the_digest() -> None:
    cluster, settings = one_site(3), Settings()
    seen = {digest(cluster, settings)}
    for field in settings.__struct_fields__:
        # One more or one less: either keeps to the rules between settings.
        for value in (getattr(settings, field) + 1, getattr(settings, field) - 1):
            try:
                other = msgspec.structs.replace(settings, **{field: value})
            except ConfigError:
                continue
            assert digest(cluster, other) not in seen, field
            seen.add(digest(cluster, other))
    assert len(seen) > len(settings.__struct_fields__)


def test_the_digests_name_a_cluster_and_fit_64_bits() -> None:
    clusters = [one_site(2), one_site(3), one_site(3, "y"), two(), two("127.0.0.2"), two(multicast=MULTICAST)]
    assert len({cluster.digest() for cluster in clusters}) == len(clusters)
    assert len({digest(cluster, lan()) for cluster in clusters}) == len(clusters)
    assert all(0 <= digest(cluster, lan()) < 2**64 for cluster in clusters)


def test_the_settings_do_not_change_how_a_cluster_is_found() -> None:
    text = render(one_site(1), "lan").replace("port = 0", "port = 4801")
    short = parse(text, FILE)
    long = parse(text.replace('preset = "lan"', 'preset = "wan"'), FILE)
    assert short.cluster.digest() == long.cluster.digest()
    assert digest(short.cluster, short.settings) != digest(long.cluster, long.settings)


# --- multicast


def test_a_file_with_multicast_is_read_back() -> None:
    cluster = two(multicast=MULTICAST)
    configuration = parse(render(cluster, "loopback"), FILE)
    assert configuration.cluster == cluster
    assert configuration.settings == loopback(2)
    assert configuration.unsealed_hosts == []


@pytest.mark.parametrize(
    "wrong",
    ["", "239.192.77.1", "239.192.77.1:0", "239.192.77.1:65536", "239.192.77:4800", "192.0.2.1:4800", "[ff02::1]:4800"],
)
def test_what_is_no_multicast_address_is_refused_with_line_and_remedy(wrong: str) -> None:
    text = render(two(multicast=MULTICAST), "loopback").replace(MULTICAST, wrong)
    with pytest.raises(ConfigError, match=r"covey\.toml:4: multicast is .*: write .* for example 239\.192\.77\.1:4800"):
        parse(text, FILE)
    with pytest.raises(ConfigError, match="write an IPv4 multicast address"):
        two(multicast=wrong)


def test_multicast_between_loopback_and_elsewhere_is_refused() -> None:
    text = render(two("127.0.0.1", "192.0.2.1", multicast=MULTICAST), "lan")
    with pytest.raises(ConfigError, match=r"covey\.toml:5: multicast stays on one network.*remove `multicast`"):
        parse(text, FILE)


def test_multicast_elsewhere_still_asks_for_trust_in_the_network() -> None:
    text = render(two("192.0.2.1", "192.0.2.2", multicast=MULTICAST), "lan")
    assert parse(text, FILE).unsealed_hosts == ["192.0.2.1", "192.0.2.2"]
    with pytest.raises(ConfigError, match="`allow_unsealed = true` if you trust"):
        parse(text.replace("allow_unsealed = true", "allow_unsealed = false"), FILE)


# --- hosts


@pytest.mark.parametrize("host", ["example.org", "::1", "127.0.0.256", ""])
def test_what_is_no_ipv4_address_is_refused_with_its_line(host: str) -> None:
    with pytest.raises(ConfigError, match=r"covey\.toml:\d+: daemon 'a' has host .*: write the IPv4 address"):
        parse(render(two(host), "lan"), FILE)


@pytest.mark.parametrize(
    ("host", "near"), [("localhost", True), ("127.1.2.3", True), ("192.0.2.1", False), ("x", False)]
)
def test_loopback_is_told_from_other_hosts(host: str, near: bool) -> None:
    assert is_loopback(host) == near


# --- what a person may write by mistake


@pytest.mark.parametrize(
    ("right", "wrong", "remedy"),
    [
        ('host = "127.0.0.1"', 'hots = "127.0.0.1"', "lists every field"),
        ("port = 4802", "port = 4801", "give it another port"),
        ('name = "b"', 'name = "../b"', "must not contain '/'"),
        ('name = "b"', 'name = "b@c"', "must not contain '@'"),
        ('name = "b"', 'name = ""', "must not be empty"),
        ('name = "b"', 'name = "b\\u001b[31m"', "control characters"),
        ('name = "b"', f'name = "{"b" * 200}"', "at most 32 characters"),
        ('cluster = "x"', 'cluster = ""', "a cluster cannot be called"),
        ('host = "127.0.0.1"', 'host = "0.0.0.0"', "of one machine"),
        ('host = "127.0.0.1"', 'host = "239.1.1.1"', "of one machine"),
        ("port = 4802", 'port = 4802\nclients = "127.0.0.1:²"', "write an IPv4 address and a port"),
    ],
)
def test_a_slip_is_refused_with_a_remedy(right: str, wrong: str, remedy: str) -> None:
    text = render(two(), "loopback")
    assert right in text
    with pytest.raises(ConfigError, match=re.escape(remedy)):
        parse(text.replace(right, wrong), FILE)


def test_a_setting_has_an_upper_bound() -> None:
    text = render(two(), "loopback") + "\n[settings]\npeer_timeout_ms = 9999999999\n"
    with pytest.raises(ConfigError, match=r"peer_timeout_ms <= 2147483648; peer_timeout_ms is 9999999999: change it$"):
        parse(text, FILE)


def _one(field: str, value: int) -> dict[str, Any]:
    return {field: value}


@pytest.mark.parametrize("field", sorted(WAITING_BYTES))
def test_what_bounds_memory_may_be_as_large_as_memory_is(field: str) -> None:
    assert getattr(Settings(**_one(field, BYTES_MAX)), field) == BYTES_MAX
    with pytest.raises(ConfigError, match=f"{field} <= {BYTES_MAX}"):
        Settings(**_one(field, BYTES_MAX + 1))


@pytest.mark.parametrize("site", [-1, 65_536, 10**21])
def test_a_site_that_no_datagram_can_name_is_refused_with_its_line(site: int) -> None:
    text = render(two(), "loopback").replace("site = 0", f"site = {site}")
    with pytest.raises(ConfigError, match=rf"covey\.toml:10: daemon 'a' has site {site}: write 0 to 65535$"):
        parse(text, FILE)
    assert parse(text.replace(str(site), "65535"), FILE).cluster.daemons[0].site == 65_535


def test_a_number_of_thousands_of_digits_is_refused() -> None:
    with pytest.raises(ConfigError, match="not TOML"):
        parse(render(two(), "loopback").replace("site = 0", f"site = {'9' * 5_000}"), FILE)


def test_a_preset_that_does_not_exist_is_refused_with_those_that_do() -> None:
    with pytest.raises(ConfigError, match=r"covey\.toml:3: .*; write one of loopback, lan, wan$"):
        parse(render(two(), "loopback").replace('preset = "loopback"', 'preset = "foo"'), FILE)


@pytest.mark.parametrize("name", ['a"b', "a\\b", "grüße 😀"])
def test_any_name_that_a_cluster_may_have_is_read_back(name: str) -> None:
    assert parse(render(Cluster(name, two().daemons), "loopback"), FILE).cluster.name == name


def test_no_line_is_looked_for_in_a_file_in_which_nothing_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look goes through the whole file: one a daemon would take seconds for a large cluster."""

    def refuse(*_: str) -> str:
        raise AssertionError("a line was looked for")

    monkeypatch.setattr(config_file, "line_of", refuse)
    clients = [msgspec.structs.replace(one, clients=f"127.0.0.1:{one.port + 100}") for one in two().daemons]
    assert parse(render(Cluster("x", tuple(clients)), "loopback"), FILE).cluster.daemons == tuple(clients)


@pytest.mark.parametrize(
    ("wrong", "rule"),
    [
        ({"bundle_bytes": 511}, "bundle_bytes >= 512"),
        ({"session_receive_bytes": 20_000_000, "clients_bytes_max": 19_999_999}, "clients_bytes_max >= session_rec"),
    ],
)
def test_settings_with_which_a_daemon_could_not_do_its_part_are_refused(wrong: dict[str, Any], rule: str) -> None:
    with pytest.raises(ConfigError, match=rule):
        Settings(**wrong)
    one_more = {field: value + 1 for field, value in wrong.items() if field != "session_receive_bytes"}
    Settings(**{**wrong, **one_more})


# --- sites and links

SITES = """
cluster = "world"
[[site]]
name = "east"
[[site]]
name = "west"
[[site]]
name = "south"
[[link]]
between = ["east", "west"]
cost = 5
[[link]]
between = ["west", "south"]
[[daemon]]
name = "a"
site = "east"
port = 4801
[[daemon]]
name = "b"
site = "east"
port = 4802
gateway = false
[[daemon]]
name = "c"
site = "west"
port = 4803
[[daemon]]
name = "d"
site = "south"
port = 4804
"""


def test_sites_have_names_and_their_place_in_the_file_is_their_number() -> None:
    cluster = parse(SITES, FILE).cluster
    assert [daemon.site for daemon in cluster.daemons] == [0, 0, 1, 2]
    assert cluster.site_names == ("east", "west", "south")
    assert cluster.links == (SiteLink(0, 1, 5), SiteLink(1, 2, 1))
    assert [daemon.gateway for daemon in cluster.daemons] == [True, False, True, True]


def test_a_file_with_sites_and_links_is_read_back() -> None:
    cluster = parse(SITES, FILE).cluster
    assert parse(render(cluster, "wan"), FILE).cluster == cluster


def test_without_links_each_site_is_linked_with_every_other() -> None:
    assert many_sites([1, 2, 1]).all_links == (SiteLink(0, 1), SiteLink(0, 2), SiteLink(1, 2))
    assert one_site(3).all_links == ()


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ('["east", "west"]', '["east", "north"]', "10: there is no site 'north': write one of east, west, south"),
        ('["east", "west"]', '["east", "east"]', "10: the link between east and east joins a site with itself"),
        ("cost = 5", "cost = 0", "11: the link between east and west has cost 0: write 1 to 1000000"),
        ('["west", "south"]', '["west", "east"]', "13: the link between east and west is there twice: remove one"),
        ('[[link]]\nbetween = ["west", "south"]', "", "10: no links join south with east: add a [[link]]"),
        ('site = "south"', 'site = "north"', "29: there is no site 'north'"),
        ('site = "south"', "site = 2", "29: there is no site 2: write one of east, west, south"),
        ('name = "south"\n[[link]]', 'name = "west"\n[[link]]', "8: two sites are called 'west'"),
        ('site = "south"', 'site = "west"', "13: the link between west and south: no daemon is in site south"),
        ('site = "west"\n', 'site = "west"\ngateway = false\n', "no daemon of site west is a gateway"),
    ],
)
def test_a_slip_in_sites_and_links_is_refused_with_its_line(right: str, wrong: str, said: str) -> None:
    assert right in SITES
    with pytest.raises(ConfigError) as error:
        parse(SITES.replace(right, wrong, 1), FILE)
    assert said in str(error.value)


def test_a_site_by_name_needs_a_list_of_sites() -> None:
    text = render(two(), "loopback").replace("site = 0", 'site = "east"')
    with pytest.raises(
        ConfigError, match=r"there is no site 'east': write its number, or list the sites: \[\[site\]\]"
    ):
        parse(text, FILE)


def test_links_and_gateways_are_part_of_the_digest() -> None:
    plain = many_sites([2, 1])
    linked = many_sites([2, 1], (SiteLink(0, 1, 2),))
    daemons = (msgspec.structs.replace(plain.daemons[0], gateway=False), *plain.daemons[1:])
    no_gateway = msgspec.structs.replace(plain, daemons=daemons)
    assert len({one.digest() for one in (plain, linked, no_gateway)}) == 3


@pytest.mark.parametrize("link", [SiteLink(1, 0), SiteLink(-1, 1), SiteLink(0, 65_536)])
def test_a_link_between_numbers_that_are_no_sites_is_refused(link: SiteLink) -> None:
    with pytest.raises(ConfigError, match="write sites from 0 to 65535, the lower first"):
        many_sites([1, 1], (link,))


@pytest.mark.parametrize("name", ["", "two words", "a:b", "x" * 33])
def test_a_site_is_called_like_a_daemon(name: str) -> None:
    with pytest.raises(ConfigError, match="a site name "):
        msgspec.structs.replace(many_sites([1, 1]), site_names=(name, "west"))


TWO_SITES = """cluster = "c"
[[site]]
name = "{0}"
[[site]]
name = "west"
[[link]]
between = ["{0}", "west"]
cost = 1
{1}[[daemon]]
name = "a"
site = "{0}"
port = 4001
gateway = {2}
[[daemon]]
name = "b"
site = "west"
port = 4002
"""


@pytest.mark.parametrize(
    ("site", "more", "gateway", "told"),
    [
        ("east", "", "false", "c.toml:13: no daemon of site east is a gateway"),
        ("the east", "", "true", "c.toml:3: a site name must not contain ' '"),
        (
            "cost",
            '[[link]]\nbetween = ["west", "cost"]\n',
            "true",
            "c.toml:10: the link between cost and west is there twice",
        ),
    ],
    ids=["no gateway", "a name", "a site that is called like a field"],
)
def test_what_is_wrong_with_sites_has_its_line(site: str, more: str, gateway: str, told: str) -> None:
    with pytest.raises(ConfigError, match=f"^{re.escape(told)}"):
        parse(TWO_SITES.format(site, more, gateway), Path("c.toml"))


def test_links_written_in_one_line_have_that_line() -> None:
    twice = "link = [{between = [0, 1]}, {between = [1, 0]}]"
    daemons = "".join(f'[[daemon]]\nname = "{name}"\nsite = {at}\nport = {4001 + at}\n' for at, name in enumerate("ab"))
    with pytest.raises(ConfigError, match=r"^c\.toml:2: the link between 0 and 1 is there twice"):
        parse(f'cluster = "c"\n{twice}\n{daemons}', Path("c.toml"))
