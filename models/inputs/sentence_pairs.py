"""Sentence pairs for translation: read, cut into words, numbered."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources

import numpy as np
from numpy.typing import NDArray

from ..errors import BadInput
from .text import FIELD, decode_text, shown, too_many

MIN_PAIRS = 8
MAX_PAIRS = 100_000
MAX_WORDS = 12
EOS, UNK = 0, 1
SPECIAL = ("<eos>", "<unk>")
EXPECTED = "lines of a sentence, a tab and its translation"

Words = tuple[str, ...]

# An elided word keeps its apostrophe and stands alone: l' eau, qu' il; but don't, aujourd'hui.
_WORD = re.compile(r"(?:[cdjlmnst]|qu|(?:jus|lors|puis|quoi)qu)'(?=\w)|\w+(?:['-]\w+)*")


@dataclass(frozen=True)
class Pair:
    """A sentence and its translation, each as words (at least one)."""

    source: Words
    target: Words


@dataclass(frozen=True)
class Vocabulary:
    """Words by id: words[0] is <eos>, which also pads, and words[1] is <unk>."""

    words: Words
    index: Mapping[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "index", {word: i for i, word in enumerate(self.words)})

    def __len__(self) -> int:
        return len(self.words)

    @classmethod
    def build(cls, sentences: Iterable[Words], limit: int) -> Vocabulary:
        """From the `limit` most frequent words, equally frequent ones in alphabetical order.

        Has at most limit + 2 entries: <eos> and <unk> come first and are not counted.
        """
        counts = Counter(word for sentence in sentences for word in sentence)
        ranked = sorted(counts, key=lambda word: (-counts[word], word))
        return cls(SPECIAL + tuple(ranked[:limit]))


def tokenise(sentence: str) -> Words:
    """Lower-case words without punctuation; hyphens stay, elided French words stand alone."""
    text = unicodedata.normalize("NFC", sentence.lower()).replace("’", "'")
    return tuple(_WORD.findall(text))


def read_pairs(content: bytes, *, max_words: int = MAX_WORDS) -> tuple[Pair, ...]:
    """Pairs from the bytes of a text file with a sentence, a tab and its translation on each line.

    Whatever follows a second tab (an attribution) and blank lines are ignored. Pairs that repeat,
    have a side without words, or a side of more than `max_words` words are left out. Raises
    BadInput(field="data") for lines without a tab, more than 100,000 lines and fewer than
    8 usable pairs.
    """
    text = decode_text(content, EXPECTED).replace("\r\n", "\n").replace("\r", "\n")
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    if len(lines) > MAX_PAIRS:
        raise too_many("pairs", MAX_PAIRS)
    without_tab = [(number, line) for number, line in lines if "\t" not in line.strip()]
    if without_tab:
        count, (number, line) = len(without_tab), without_tab[0]
        what = "One line has" if count == 1 else f"{count} lines have"
        first = "" if count == 1 else "the first is "
        raise BadInput(
            f"{what} no tab ({first}line {number}, {shown(line)}); "
            "write a sentence, a tab and its translation on each line.",
            FIELD,
        )
    pairs = dict.fromkeys(Pair(*map(tokenise, line.split("\t")[:2])) for _, line in lines)
    usable = tuple(pair for pair in pairs if _fits(pair, max_words))
    if len(usable) < MIN_PAIRS:
        raise BadInput(
            f"Only {len(usable)} of {len(lines)} lines can be used; bring at least {MIN_PAIRS} "
            f"different pairs with 1 to {max_words} words on each side.",
            FIELD,
        )
    return usable


@functools.cache
def default_pairs() -> tuple[Pair, ...]:
    """English–French pairs written for this project: everyday sentences of 3 to 9 words."""
    return read_pairs(resources.files(__package__).joinpath("english_french.tsv").read_bytes())


def fitting(pairs: Iterable[Pair], length: int) -> tuple[Pair, ...]:
    """The pairs whose sides both leave room for an <eos> within `length` places."""
    return tuple(pair for pair in pairs if _fits(pair, length - 1))


def encode(sentences: Sequence[Words], vocabulary: Vocabulary, length: int) -> NDArray[np.int32]:
    """Word ids, int32 [sentences, length], each row filled up with at least one <eos>.

    Raises BadInput(field="data") for a sentence that is too long: it is never cut. `fitting`
    leaves such pairs out beforehand.
    """
    ids = np.full((len(sentences), length), EOS, dtype=np.int32)
    for row, sentence in zip(ids, sentences, strict=True):
        if len(sentence) >= length:
            raise BadInput(
                f"{shown(' '.join(sentence))} has {len(sentence)} words; with a length of "
                f"{length} a sentence may have {length - 1}.",
                FIELD,
            )
        row[: len(sentence)] = [vocabulary.index.get(word, UNK) for word in sentence]
    return ids


def decode(ids: Iterable[int], vocabulary: Vocabulary) -> str:
    """The words of `ids` up to the first <eos>, with nothing between l' and its word."""
    words: list[str] = []
    for number in ids:
        if number == EOS:
            break
        words.append(vocabulary.words[int(number)])
    return " ".join(words).replace("' ", "'")


def _fits(pair: Pair, most: int) -> bool:
    return all(1 <= len(side) <= most for side in (pair.source, pair.target))
