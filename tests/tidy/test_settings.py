"""Every setting is explained where it is born, and the configuration page says the same."""

from __future__ import annotations

import inspect
import re

import pytest

from covey.config import BYTES_MAX, MAY_BE_ZERO, SETTING_MAX, WAITING_BYTES, Settings
from docs.configuration_tables import COMMAND, PAGE, Field, fields, made, parts


def subjects() -> set[str]:
    """The fields that `Settings` checks one by one: each rule begins with the name of its field."""
    source = inspect.getsource(Settings.__post_init__)
    return set(re.findall(r"""_require\(.*?,\s+f?"([a-z_]+) """, source, re.DOTALL))


def test_the_page_is_made_of_the_settings() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == made(page), f"docs/configuration.md is not what src/covey/config.py says; run: {COMMAND}"


def test_every_setting_is_explained() -> None:
    found = list(fields())
    assert tuple(field.name for field in found) == Settings.__struct_fields__
    assert [field.name for field in found if not field.meaning or not field.unit] == []


def test_what_is_checked_is_said_at_its_field_and_nothing_else() -> None:
    assert {field.name for field in fields() if field.checked} == subjects()
    assert {"peer_timeout_ms", "ring_packets_unstable", "clients_bytes_max", "block_percent"} <= subjects()


def test_what_zero_means_is_said_where_it_is_allowed() -> None:
    zero = {field.name for field in fields() if re.search(r"\b0:", field.meaning)}
    assert zero == MAY_BE_ZERO


def test_the_page_says_how_large_a_setting_may_be() -> None:
    said, _, _ = PAGE.read_text(encoding="utf-8").partition("## Settings\n")[2].partition("<!--")
    assert f"at most {SETTING_MAX:,}." in said
    assert "each up to 1 TiB" in said
    assert BYTES_MAX == 1 << 40
    assert set(re.findall(r"`(\w+_bytes\w*)`", said)) == WAITING_BYTES


def test_rules_are_read() -> None:
    field = Field("", "x_ms", *parts("Long.\n\n    Checked: at most\n    7\n    Advice: 6\n"))
    assert (field.meaning, field.unit, field.rule) == ("Long.", "ms", "**at most 7**; 6")


def test_a_page_without_a_place_for_the_tables_is_noticed() -> None:
    with pytest.raises(ValueError, match="comments around"):
        made("# Configuration\n")
