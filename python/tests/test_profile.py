"""Drives: from names, files, texts and dictionaries, with the command's checks."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

import zonelab


def test_a_profile_is_the_same_from_wherever_it_comes(tmp_path: Path) -> None:
    built_in = zonelab.Profile("confznspp")
    text = built_in.to_toml()
    path = tmp_path / "mine.toml"
    path.write_text(text)
    for source in (text, path, str(path), built_in.to_dict(), built_in):
        assert zonelab.Profile(source) == built_in
    assert pickle.loads(pickle.dumps(built_in)) == built_in


def test_settings_change_keys() -> None:
    changed = zonelab.Profile("confznspp", set={"media.read": "70us"})
    assert changed == zonelab.Profile("confznspp", set=["media.read=70us"])
    assert changed != zonelab.Profile("confznspp")
    assert changed.to_dict()["media"]["read"] == "70us"


def test_what_is_wrong_is_said_with_its_key() -> None:
    data = zonelab.Profile("confznspp").to_dict()
    data["media"]["program"] = "700"
    data["media"]["raed"] = "1us"
    with pytest.raises(zonelab.InvalidInput) as caught:
        zonelab.Profile(data)
    problems = {problem.key: problem for problem in caught.value.problems}
    assert "has no unit" in problems["media.program"].what
    assert "media.raed" in problems
    assert caught.value.exit_code == 3
    with pytest.raises(ValueError, match=r"media\.read: TOML has no NoneType"):
        zonelab.to_toml({"media": {"read": None}})
