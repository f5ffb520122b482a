"""A function in a person's own file is found, run and diagnosed on its own lines."""

from __future__ import annotations

import pytest

from models.diagnosis.user_function import diagnose_file, load_function
from models.errors import BadInput

PROGRAM = """\
import tensorflow as tf
from neighbour import start

w = tf.Variable(start, name="w")

def loss():
    return tf.reduce_sum(tf.math.log(w))

@tf.function
def compiled():
    return tf.reduce_sum(
        tf.math.log(w)
    )

def needs(x):
    return x

number = 3
"""


@pytest.fixture
def program(tmp_path):
    (tmp_path / "neighbour.py").write_text("start = [0.0, 1.0]\n")
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    return file


@pytest.mark.parametrize(("function", "line"), [("loss", 7), ("compiled", 12)])
def test_a_function_is_diagnosed_on_its_own_line(program, function, line):
    d = diagnose_file(f"{program}:{function}")
    origin = d.origins[0]
    assert (origin.op, origin.mechanism, origin.reaches) == ("Log", "log-of-zero", ("w", "loss"))
    assert (origin.source.file, origin.source.line) == (str(program), line)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("program.py", "FILE.py:function"),
        ("missing.py:loss", "no Python file"),
        ("{}:missing", "no function"),
        ("{}:number", "no function"),
        ("{}:needs", "no arguments"),
    ],
)
def test_what_cannot_be_run_is_told_in_a_sentence(program, name, words):
    with pytest.raises(BadInput, match=words):
        load_function(name.format(program))


def test_a_file_that_fails_says_why(tmp_path):
    (tmp_path / "broken.py").write_text("1 / 0\n")
    with pytest.raises(BadInput, match="ZeroDivisionError"):
        load_function(f"{tmp_path / 'broken.py'}:loss")
