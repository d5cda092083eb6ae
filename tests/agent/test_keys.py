from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from agent.conf import decode_key
from agent.keys import development_keys


def test_the_key_file_is_made_once_and_is_the_owners_alone(tmp_path: Path) -> None:
    (key,) = development_keys(tmp_path / "deep" / "data")
    path = tmp_path / "deep" / "data" / "keys"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert len(decode_key(key)) == 32
    assert development_keys(tmp_path / "deep" / "data") == (key,)
    assert [file.name for file in path.parent.iterdir()] == ["keys"]


def test_more_keys_can_be_put_in_front(tmp_path: Path) -> None:
    (old,) = development_keys(tmp_path)
    (tmp_path / "keys").write_text(f"new\n{old}\n")
    assert development_keys(tmp_path) == ("new", old)


def test_processes_that_start_together_agree(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(development_keys, [tmp_path] * 8))) == 1
