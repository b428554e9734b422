"""A file is whole or absent, whatever goes wrong on the way."""

import json
import os
from pathlib import Path

import pandas as pd
import pytest

from reports.files import atomically, write_bytes, write_json, write_parquet, write_text


def test_a_block_that_ends_well_leaves_the_file_and_nothing_else(tmp_path: Path):
    with atomically(tmp_path / "out.csv") as temporary:
        temporary.write_text("a,b\n")
        assert temporary.parent == tmp_path
        assert temporary.suffix == ".csv"
        assert not (tmp_path / "out.csv").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["out.csv"]
    assert (tmp_path / "out.csv").read_text() == "a,b\n"


def half_write_and_fail(path: Path) -> None:
    with atomically(path) as temporary:
        temporary.write_text("half")
        raise RuntimeError("the disk is on fire")


def test_a_block_that_fails_leaves_nothing(tmp_path: Path):
    with pytest.raises(RuntimeError, match="on fire"):
        half_write_and_fail(tmp_path / "out.txt")
    assert list(tmp_path.iterdir()) == []


def test_a_block_that_fails_leaves_what_was_there_before(tmp_path: Path):
    path = write_text(tmp_path / "out.txt", "yesterday's\n")
    with pytest.raises(RuntimeError):
        half_write_and_fail(path)
    assert path.read_text() == "yesterday's\n"
    assert list(tmp_path.iterdir()) == [path]


def test_an_absent_folder_is_an_error_that_names_the_file(tmp_path: Path):
    path = tmp_path / "nowhere" / "summary.json"
    with pytest.raises(FileNotFoundError) as error:
        write_text(path, "{}")
    assert error.value.filename == str(path)
    assert ".json" in str(error.value)
    assert list(tmp_path.iterdir()) == []


def test_a_file_where_the_folder_should_be_is_an_error(tmp_path: Path):
    write_text(tmp_path / "out", "")
    with pytest.raises(NotADirectoryError):
        write_bytes(tmp_path / "out" / "summary.json", b"{}")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_an_error(tmp_path: Path):
    tmp_path.chmod(0o500)
    with pytest.raises(PermissionError) as error:
        write_text(tmp_path / "out.txt", "")
    assert error.value.filename == str(tmp_path / "out.txt")
    tmp_path.chmod(0o700)


def test_a_folder_of_that_name_is_an_error_and_stays(tmp_path: Path):
    (tmp_path / "out.txt").mkdir()
    with pytest.raises(IsADirectoryError) as error:
        write_text(tmp_path / "out.txt", "text")
    assert error.value.filename == str(tmp_path / "out.txt")
    assert [path.name for path in tmp_path.iterdir()] == ["out.txt"]


def test_text_keeps_its_line_ends_and_json_its_order(tmp_path: Path):
    assert write_text(tmp_path / "a.txt", "ä\r\nb\n").read_bytes() == b"\xc3\xa4\r\nb\n"
    path = write_json(tmp_path / "a.json", {"z": 1, "a": [None, "ä"]})
    assert list(json.loads(path.read_text())) == ["z", "a"]
    assert path.read_text().endswith("}\n")


def test_json_refuses_what_json_does_not_have(tmp_path: Path):
    with pytest.raises(ValueError, match="JSON"):
        write_json(tmp_path / "a.json", {"mean": float("nan")})
    assert list(tmp_path.iterdir()) == []


def test_a_frame_comes_back_as_it_was(tmp_path: Path):
    frame = pd.DataFrame({"id": ["a", "b"], "ended_ns": pd.array([5, None], dtype="Int64")})
    path = write_parquet(tmp_path / "requests.parquet", frame)
    pd.testing.assert_frame_equal(pd.read_parquet(path), frame, check_dtype=False)
    assert list(tmp_path.iterdir()) == [path]


def test_files_get_the_permissions_the_user_asked_for(tmp_path: Path):
    plain = tmp_path / "plain"
    plain.write_text("")
    assert write_text(tmp_path / "ours", "").stat().st_mode == plain.stat().st_mode
