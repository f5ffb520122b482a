"""Sentence pairs: words, vocabulary, ids, and the pairs that come with the project."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
import unicodedata
from collections import Counter
from importlib import resources

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.errors import BadInput
from models.inputs.sentence_pairs import (
    EOS,
    UNK,
    Pair,
    Vocabulary,
    Words,
    decode,
    default_pairs,
    encode,
    fitting,
    read_pairs,
    tokenise,
)


def lines(count: int = 10, **changes: str) -> bytes:
    """Lines `word… <tab> mot…`; `line7="…"` replaces line 7."""
    texts = [f"word{i} here\tmot{i} ici" for i in range(count)]
    for place, text in changes.items():
        texts[int(place.removeprefix("line")) - 1] = text
    return "\n".join(texts).encode()


@pytest.mark.parametrize(
    ("sentence", "words"),
    [
        ("I don't know!", "i don't know"),
        ("J'aime l'eau.", "j' aime l' eau"),
        ("J’aime l’eau.", "j' aime l' eau"),
        ("Qu'est-ce que tu veux\u202f?", "qu' est-ce que tu veux"),
        ("Qu'est-ce\u00a0?", "qu' est-ce"),
        ("Aujourd'hui, c'est fini…", "aujourd'hui c' est fini"),
        ("Jusqu'ici, lorsqu'elle", "jusqu' ici lorsqu' elle"),
        ("«\u00a0Où est ma sœur\u00a0?\u00a0»", "où est ma sœur"),
        (unicodedata.normalize("NFD", "Où étés"), "où étés"),
        ("well-known 'quoted' -dash-", "well-known quoted dash"),
        ("It's 5 o'clock", "it's 5 o'clock"),
        ("?!", ""),
    ],
)
def test_words(sentence: str, words: str) -> None:
    assert tokenise(sentence) == tuple(words.split())


def test_third_column_and_blank_lines_are_ignored() -> None:
    pairs = read_pairs(b"\n" + lines(line2="Go.\tVa !\tCC-BY 2.0 #1 & #2\tmore") + b"\r\n\r\n")
    assert len(pairs) == 10
    assert pairs[1] == Pair(("go",), ("va",))
    assert pairs[0] == Pair(("word0", "here"), ("mot0", "ici"))


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_line_endings_and_encodings(ending: str, encoding: str) -> None:
    content = lines(line1="Eggs.\tDes œufs.").decode().replace("\n", ending).encode(encoding)
    pairs = read_pairs(content)
    assert len(pairs) == 10
    assert pairs[0].target == ("des", "œufs")


def test_long_wordless_and_repeated_pairs_are_left_out() -> None:
    content = lines(12, line2="a b c d\te", line3="!\t?", line4="Word0 here.\tMot0, ici")
    assert len(read_pairs(content, max_words=3)) == 9


@pytest.mark.parametrize(
    ("content", "facts"),
    [
        (b"", ["empty", "a tab and its translation"]),
        (lines(line3="no tab"), ["One line has no tab", "line 3", "'no tab'", "write a sentence"]),
        (lines(line3="a", line5="b"), ["2 lines have no tab", "first is line 3", "'a'"]),
        (lines(line3="alone\t"), ["One line has no tab", "line 3"]),
        (b"a\tb\n" * 100_001, ["more than 100000 pairs", "at most 100000"]),
        (lines(7), ["Only 7 of 7 lines", "at least 8", "1 to 12 words"]),
        (b"a\tb\n" * 20, ["Only 1 of 20 lines", "different pairs"]),
        (lines().decode().replace("mot", "é").encode("latin-1"), ["not UTF-8", "line 1", "0xE9"]),
        (lines() + b"\0", ["binary"]),
        (bytes(50_000_000), ["50.0 MB; at most 20 MB"]),
    ],
)
def test_bad_pairs_name_place_and_remedy(content: bytes, facts: list[str]) -> None:
    with pytest.raises(BadInput) as caught:
        read_pairs(content)
    assert caught.value.field == "data"
    for fact in facts:
        assert fact in caught.value.sentence


def test_vocabulary_keeps_the_most_frequent_words() -> None:
    vocabulary = Vocabulary.build([("b", "a", "c"), ("a", "c", "d"), ("c",)], limit=3)
    assert vocabulary.words == ("<eos>", "<unk>", "c", "a", "b")
    assert dict(vocabulary.index) == {"<eos>": 0, "<unk>": 1, "c": 2, "a": 3, "b": 4}
    assert len(vocabulary) == 5


def test_ids_are_padded_with_eos_and_unknown_words_marked() -> None:
    vocabulary = Vocabulary.build([("a", "b")], limit=10)
    ids = encode([("a", "b", "a"), ("z",), ()], vocabulary, length=4)
    assert ids.dtype == np.int32
    assert ids.tolist() == [[2, 3, 2, EOS], [UNK, EOS, EOS, EOS], [EOS] * 4]


def test_a_sentence_is_never_cut() -> None:
    vocabulary = Vocabulary.build([("a", "b")], limit=10)
    with pytest.raises(BadInput, match=r"'a b a' has 3 words; with a length of 3 .* may have 2"):
        encode([("a", "b", "a")], vocabulary, length=3)


def test_fitting_leaves_room_for_one_eos_on_both_sides() -> None:
    pairs = (Pair(("a",), ("b", "c")), Pair(("a",), ("b", "c", "d")), Pair(("a", "b", "c"), ("d",)))
    assert fitting(pairs, 3) == pairs[:1]
    assert fitting(pairs, 4) == pairs


def test_decoding_stops_at_eos_and_joins_elided_words() -> None:
    vocabulary = Vocabulary.build([tokenise("Je bois de l'eau")], limit=10)
    sentence = encode([tokenise("Je bois de l'eau")], vocabulary, length=9)[0]
    assert decode(sentence, vocabulary) == "je bois de l'eau"
    assert decode([EOS, 2], vocabulary) == ""
    assert decode([UNK, 2, EOS, 2], vocabulary) == f"<unk> {vocabulary.words[2]}"


WORD = st.text(st.characters(categories=["Ll"]), min_size=1, max_size=5)
SENTENCES = st.lists(st.lists(WORD, max_size=6).map(tuple), min_size=1, max_size=10)


@given(SENTENCES, st.integers(7, 12))
def test_encoding_and_decoding_are_inverse(sentences: list[Words], length: int) -> None:
    vocabulary = Vocabulary.build(sentences, limit=100)
    ids = encode(sentences, vocabulary, length)
    assert ids.shape == (len(sentences), length)
    assert (ids[:, -1] == EOS).all()
    assert [decode(row, vocabulary) for row in ids] == [" ".join(words) for words in sentences]


@given(st.text(max_size=80))
def test_words_are_stable_clean_and_normal(text: str) -> None:
    words = tokenise(text)
    assert tokenise(" ".join(words)) == words
    for word in words:
        assert not re.search(r"\s", word)
        assert word not in {"<eos>", "<unk>"}


def attempt(content: bytes) -> tuple[Pair, ...] | BadInput:
    try:
        return read_pairs(content)
    except BadInput as error:
        return error


def read_or_refuse(content: bytes) -> None:
    result = attempt(content)
    if isinstance(result, BadInput):
        assert result.sentence.endswith(".")
        assert result.field == "data"
    else:
        assert len(set(result)) == len(result) >= 8
        assert all(1 <= len(side) <= 12 for pair in result for side in (pair.source, pair.target))


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    read_or_refuse(content)


@given(st.lists(st.lists(st.text(max_size=20), min_size=1, max_size=3).map("\t".join), max_size=15))
def test_any_lines_are_read_or_refused(texts: list[str]) -> None:
    read_or_refuse(lines() + b"\n" + "\n".join(texts).encode("utf-8", "replace"))


def test_default_pairs_are_many_short_and_of_few_words() -> None:
    pairs = default_pairs()
    assert len(pairs) >= 320
    assert len({pair.source for pair in pairs}) == len(pairs)
    lengths = Counter(len(side) for pair in pairs for side in (pair.source, pair.target))
    assert set(lengths) <= set(range(3, 10))
    assert len({word for pair in pairs for word in pair.source}) <= 130
    assert len({word for pair in pairs for word in pair.target}) <= 160


def test_default_file_is_normal_unicode_with_french_typography() -> None:
    text = resources.files("models.inputs").joinpath("english_french.tsv").read_text("utf-8")
    assert text == unicodedata.normalize("NFC", text)
    rows = [line.split("\t") for line in text.splitlines()]
    assert len(rows) == len(default_pairs())
    for english, french in rows:
        assert english[-1] == french[-1]
        assert english[-1] in ".?"
        assert english[0].isupper()
        assert french[0].isupper()
        assert ("?" in french) == french.endswith("\u202f?")


def test_default_french_agrees_with_its_subject() -> None:
    """Each subject pronoun stands before a verb form of its person only."""
    endings = {"nous": ("ons", "sommes"), "ils": ("ent", "ont", "sont"), "tu": ("s", "x")}
    for pair in default_pairs():
        words = [word for word in pair.target if word not in {"ne", "n'"}]
        for pronoun, verb in itertools.pairwise(words):
            if pronoun in endings:
                assert verb.endswith(endings[pronoun]), pair


def test_default_pairs_need_no_tensorflow() -> None:
    program = (
        "import sys; from models.inputs import formula, points, sentence_pairs, table;"
        "sentence_pairs.default_pairs();"
        "assert not {'tensorflow', 'keras', 'streamlit', 'pandas'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
