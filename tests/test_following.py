"""Rows as they come: a file that grows, standard input that another program still writes."""

import gzip
import json
import os
import subprocess
import sys
import time

import pytest

import likeset as ls
from likeset.study.commands.following import Arriving, GrowingFile


def until_there(source, tries=500):
    for _ in range(tries):
        line = source()
        if line is not None:
            return line
        time.sleep(0.01)
    raise AssertionError("nothing came")


def test_lines_of_a_pipe_come_when_they_are_written():
    inside, outside = os.pipe()
    with os.fdopen(inside, "rb") as stream:
        source = Arriving(stream)
        assert source() is None
        with os.fdopen(outside, "wb", buffering=0) as pipe:
            pipe.write(b"one\ntwo\nthr")
            assert (until_there(source), source(), source()) == (b"one\n", b"two\n", None)
            pipe.write(b"ee\nfour")
            assert until_there(source) == b"three\n"
        assert (until_there(source), source(), source()) == (b"four", b"", b"")


def test_a_stream_that_fails_has_ended(capfd):
    class Hanging:
        said = False

        def read1(self, size):
            if self.said:
                raise OSError("hung up")
            self.said = True
            return b"one\ntwo"

    source = Arriving(Hanging())
    assert [until_there(source) for _ in range(3)] == [b"one\n", b"two", b""]
    assert "hung up" in capfd.readouterr().err


def grown(path):
    path.write_bytes(b"a\nfirst\nsecond\n")
    source = GrowingFile(path)
    assert [source() for _ in range(4)] == [b"a\n", b"first\n", b"second\n", None]
    return source


def test_a_line_is_read_once_it_is_complete(tmp_path):
    source = grown(tmp_path / "a.csv")
    with open(tmp_path / "a.csv", "ab", buffering=0) as file:
        file.write(b"fou")
        assert source() is None and source.unfinished
        file.write(b"rth\n")
    assert (source(), source(), source.unfinished) == (b"fourth\n", None, False)
    source.close()


def test_a_compressed_file_has_no_lines_to_wait_for(tmp_path):
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"a\nfirst\n"))
    with pytest.raises(ls.InvalidArgumentError, match="compressed"):
        GrowingFile(tmp_path / "a.csv.gz")


def test_what_was_read_must_stay(tmp_path):
    path, other = tmp_path / "a.csv", tmp_path / "b.csv"
    other.write_bytes(b"a\nfirst\nsecond\nthird\n")
    changes = {
        "shorter": lambda: path.write_bytes(b"a\n"),
        "a line that was read has changed": lambda: path.write_bytes(b"a\nfirst\nanother\nthird\n"),
        "replaced by another file": lambda: other.replace(path),
        "was removed": path.unlink,
    }  # fmt: skip
    for said, change in changes.items():
        source = grown(path)
        change()
        with pytest.raises(ls.InvalidArgumentError, match=said):
            source()
        source.close()


def test_standard_input_is_answered_before_it_ends():
    command = "watch - --outcome y --family bernoulli --by v=A,B --control A --follow --every 0.05 --json"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    with subprocess.Popen(
        [sys.executable, "-m", "likeset", *command.split()], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env=environment,
    ) as process:  # fmt: skip
        process.stdin.write("v,y\nA,1\nB,0\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["rows_recorded"] == 2
        process.stdin.write("B,1")
        process.stdin.close()
        assert json.loads(process.stdout.readline())["rows_recorded"] == 3
        process.stdout.read()
        assert process.wait(120) == 0
