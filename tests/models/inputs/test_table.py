"""Tables with a two-class label: what is read, and what is refused with which facts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.errors import BadInput
from models.inputs.table import (
    Table,
    breast_cancer,
    read_table,
    standardise,
    train_test_split,
)


def csv_of(header: str = "age,weight,label", rows: int = 24, **changes: str) -> bytes:
    """Rows `i, i/2, i % 2` below the header; `line7="…"` replaces line 7 of the file."""
    lines = [header] + [f"{i},{i / 2},{i % 2}" for i in range(rows)]
    for place, text in changes.items():
        lines[int(place.removeprefix("line")) - 1] = text
    return "\n".join(lines).encode()


def refusal(content: bytes, **options: str) -> BadInput:
    with pytest.raises(BadInput) as caught:
        read_table(content, **options)
    sentence = caught.value.sentence
    assert sentence.endswith(".")
    assert "\n" not in sentence
    assert len(sentence) < 400
    return caught.value


def with_labels(labels: list[str], header: str = "a,label") -> bytes:
    return "\n".join([header] + [f"{i},{label}" for i, label in enumerate(labels)]).encode()


def test_values_names_and_types() -> None:
    table = read_table(csv_of())
    assert table.features.dtype == np.float64
    assert table.labels.dtype == np.int64
    np.testing.assert_array_equal(table.features, [[i, i / 2] for i in range(24)])
    np.testing.assert_array_equal(table.labels, np.arange(24) % 2)
    assert table.feature_names == ("age", "weight")
    assert (table.label_name, table.class_names) == ("label", ("0", "1"))


@pytest.mark.parametrize("name", ["Label", "TARGET", "class", "y", "Outcome", "diagnosis"])
def test_label_column_found_by_name_wherever_it_stands(name: str) -> None:
    content = "\n".join([f"{name},a"] + [f"{i % 2},{i}" for i in range(20)]).encode()
    table = read_table(content)
    assert (table.label_name, table.feature_names) == (name, ("a",))


def test_label_asked_for_wins() -> None:
    content = "\n".join(["sick,label"] + [f"{i % 2},{i}" for i in range(20)]).encode()
    assert read_table(content, label="sick").feature_names == ("label",)


def test_last_column_with_two_values_is_the_label() -> None:
    assert read_table(csv_of("age,weight,sick")).label_name == "sick"


def test_rarer_word_is_label_one() -> None:
    table = read_table(with_labels(["yes"] * 15 + ["no"] * 6))
    assert table.class_names == ("yes", "no")
    assert table.labels.sum() == 6


def test_larger_number_is_label_one_however_it_is_written() -> None:
    table = read_table(with_labels(["1"] * 10 + ["1.0"] * 5 + ["-1"] * 7))
    assert table.class_names == ("-1", "1")
    assert table.labels.sum() == 15


def test_semicolons_with_decimal_commas_and_bom() -> None:
    content = "\n".join(["a;label"] + [f"{i},25;{i % 2}" for i in range(20)]).encode("utf-8-sig")
    np.testing.assert_array_equal(read_table(content).features[:, 0], np.arange(20) + 0.25)


@pytest.mark.parametrize(
    ("content", "facts"),
    [
        (b"", ["empty", "header", "label column"]),
        (b"age,label\n", ["only a header", "at least 20 rows"]),
        (csv_of("age,weight,bmi", line9="3,4,5"), ["no label column", "diagnosis", "'bmi'", "3"]),
        (csv_of(line7="5,heavy,1"), ["Line 7", "'weight'", "text 'heavy'", "must hold numbers"]),
        (csv_of(line5="3,,1"), ["One cell", "line 5", "'weight'", "empty"]),
        (
            csv_of(line5="NaN,1,1", line6="4,inf,0", line8="6,NA,0"),
            ["3 cells", "first in line 5", "'age'", "'NaN'", "remove those rows"],
        ),
        (csv_of(line5="1e39,1,1"), ["line 5", "'age'", "'1e39'", "3.4e+38"]),
        (csv_of(line5="1,1,"), ["line 5", "'label'", "empty"]),
        (with_labels(["1"] * 25), ["'label'", "only one class", "'1'", "exactly two"]),
        (with_labels(["a", "b", "c"] * 9), ["3 classes", "'a', 'b', 'c'", "exactly two"]),
        (with_labels([str(i) for i in range(30)]), ["30 classes", "and 25 more"]),
        (with_labels(["a"] * 20 + ["b"]), ["Only one row", "'b'", "at least two"]),
        (csv_of(rows=19), ["19 rows", "at least 20"]),
        (csv_of(rows=1), ["1 row below", "at least 20"]),
        (csv_of(line4="1,2"), ["Line 4 has 2 cells", "header has 3"]),
        (csv_of(line4="1,2,0,9"), ["Line 4 has 4 cells", "header has 3"]),
        (csv_of("age,age,label"), ["'age'", "own name"]),
        (csv_of("1,2,0"), ["Line 1 holds numbers", "header line above"]),
        (b"label\n" + b"0\n1\n" * 12, ["only column is the label 'label'", "at least one"]),
        (b"a,label\n" + b"1,0\n" * 200_002, ["more than 200000 rows", "at most 200000"]),
        (csv_of() + b"\0", ["binary", "NUL"]),
        (csv_of("âge,w,label").decode().encode("latin-1"), ["not UTF-8", "line 1", "0xE2"]),
    ],
)
def test_bad_tables_name_place_and_remedy(content: bytes, facts: list[str]) -> None:
    error = refusal(content)
    assert error.field == "data"
    for fact in facts:
        assert fact in error.sentence


def test_unknown_label_lists_the_columns() -> None:
    error = refusal(csv_of(), label="sick")
    assert error.field == "label_column"
    for fact in ["'sick'", "'age', 'weight', 'label'"]:
        assert fact in error.sentence


def test_fifty_megabytes_are_refused() -> None:
    assert "50.0 MB; at most 20 MB" in refusal(bytes(50_000_000)).sentence


def test_breast_cancer_has_malignant_as_one() -> None:
    table = breast_cancer()
    assert table.features.shape == (569, 30)
    assert np.bincount(table.labels).tolist() == [357, 212]
    assert table.class_names == ("benign", "malignant")
    # Malignant nuclei are the larger ones (published means of the mean radius: 17.46 and 12.15).
    radius = table.features[:, table.feature_names.index("mean radius")]
    assert radius[table.labels == 1].mean() == pytest.approx(17.46, abs=0.01)
    assert radius[table.labels == 0].mean() == pytest.approx(12.15, abs=0.01)


# Smallest and largest value of each column, as the table's publishers give them.
PUBLISHED = {
    "mean radius": (6.981, 28.11),
    "mean texture": (9.71, 39.28),
    "mean perimeter": (43.79, 188.5),
    "mean area": (143.5, 2501.0),
    "mean smoothness": (0.053, 0.163),
    "mean compactness": (0.019, 0.345),
    "mean concavity": (0.0, 0.427),
    "mean concave points": (0.0, 0.201),
    "mean symmetry": (0.106, 0.304),
    "mean fractal dimension": (0.05, 0.097),
    "radius error": (0.112, 2.873),
    "texture error": (0.36, 4.885),
    "perimeter error": (0.757, 21.98),
    "area error": (6.802, 542.2),
    "smoothness error": (0.002, 0.031),
    "compactness error": (0.002, 0.135),
    "concavity error": (0.0, 0.396),
    "concave points error": (0.0, 0.053),
    "symmetry error": (0.008, 0.079),
    "fractal dimension error": (0.001, 0.03),
    "worst radius": (7.93, 36.04),
    "worst texture": (12.02, 49.54),
    "worst perimeter": (50.41, 251.2),
    "worst area": (185.2, 4254.0),
    "worst smoothness": (0.071, 0.223),
    "worst compactness": (0.027, 1.058),
    "worst concavity": (0.0, 1.252),
    "worst concave points": (0.0, 0.291),
    "worst symmetry": (0.156, 0.664),
    "worst fractal dimension": (0.055, 0.208),
}


def test_breast_cancer_has_the_published_ranges() -> None:
    table = breast_cancer()
    assert table.feature_names == tuple(PUBLISHED)
    ends = np.stack([table.features.min(axis=0), table.features.max(axis=0)], axis=1)
    np.testing.assert_allclose(ends, list(PUBLISHED.values()), rtol=0, atol=5e-4 + 1e-9)


def test_breast_cancer_split_is_426_to_143_in_proportion() -> None:
    table = breast_cancer()
    train, test = train_test_split(table, seed=3)
    assert (len(train), len(test)) == (426, 143)
    assert abs(table.labels[test].mean() - 212 / 569) < 1 / 143
    again = train_test_split(table, seed=3)
    np.testing.assert_array_equal(train, again[0])
    assert not np.array_equal(test, train_test_split(table, seed=4)[1])


@given(
    st.lists(st.integers(0, 1), min_size=4, max_size=200).filter(
        lambda labels: 2 <= sum(labels) <= len(labels) - 2
    ),
    st.integers(0, 2**32),
    st.floats(0.01, 0.99),
)
def test_split_takes_every_row_once_and_both_classes_twice(
    labels: list[int], seed: int, held_out: float
) -> None:
    count = len(labels)
    table = Table(np.zeros((count, 1)), np.array(labels), ("a",), "label", ("0", "1"))
    train, test = train_test_split(table, seed, held_out)
    assert sorted([*train, *test]) == list(range(count))
    assert set(table.labels[train]) == set(table.labels[test]) == {0, 1}
    assert abs(len(test) - held_out * count) <= 2


def test_standardise_uses_the_training_rows_only() -> None:
    features = np.array([[1.0, 0.1, 3.0], [3.0, 0.1, 3.0], [5.0, 0.1, 3.0], [100.0, 9.0, 3.0]])
    result = standardise(features, np.array([0, 1, 2]))
    # Mean 3, variance (4 + 0 + 4) / 3.
    deviation = np.sqrt(8 / 3)
    np.testing.assert_allclose(result[:, 0], (features[:, 0] - 3) / deviation)
    np.testing.assert_array_equal(result[:, 1:], 0.0)


@pytest.mark.filterwarnings("error")
@given(
    st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=2, max_size=40)
)
def test_standardised_training_rows_are_finite_centred_and_of_unit_variance(
    column: list[float],
) -> None:
    features = np.array(column)[:, None]
    result = standardise(features, np.arange(len(column)))
    assert np.isfinite(result).all()
    if len(set(column)) == 1:
        assert not result.any()
    assert np.abs(result).max() <= np.sqrt(len(column)) + 1e-6


def check_invariants(table: Table) -> None:
    rows, columns = table.features.shape
    assert rows >= 20
    assert columns == len(table.feature_names) >= 1
    assert np.isfinite(table.features.astype(np.float32)).all()
    assert table.features.dtype == np.float64
    assert table.labels.shape == (rows,)
    assert table.labels.dtype == np.int64
    assert (np.bincount(table.labels, minlength=2) >= 2).all()
    assert set(table.labels) == {0, 1}
    assert len(set(table.class_names)) == 2


def attempt(content: bytes) -> Table | BadInput:
    try:
        return read_table(content)
    except BadInput as error:
        return error


def read_or_refuse(content: bytes) -> None:
    result = attempt(content)
    if isinstance(result, BadInput):
        assert result.sentence.endswith(".")
        assert result.field == "data"
    else:
        check_invariants(result)


@given(st.binary(max_size=400))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    read_or_refuse(content)


CELL = st.one_of(
    st.floats().map(repr),
    st.integers(-3, 3).map(str),
    st.sampled_from(["", "NA", "yes", "no", '"', "0,5", "-inf", "1e400", "\t", ";", "é"]),
)


@given(
    header=st.lists(st.sampled_from(["a", "b", "Label", "y", "", "1"]), min_size=1, max_size=4),
    rows=st.lists(st.lists(CELL, min_size=1, max_size=4), max_size=4),
    good=st.integers(15, 30),
    mark=st.sampled_from([",", ";", "\t"]),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "latin-1"]),
)
def test_any_csv_is_read_or_refused(
    header: list[str], rows: list[list[str]], good: int, mark: str, encoding: str
) -> None:
    regular = [[str((i + j) % 2) for j in range(len(header))] for i in range(good)]
    lines = [mark.join(cells) for cells in [header, *regular, *rows]]
    read_or_refuse("\n".join(lines).encode(encoding))


@given(
    st.lists(
        st.tuples(st.floats(-1e30, 1e30), st.floats(-1e30, 1e30), st.booleans()),
        min_size=20,
        max_size=40,
    ).filter(lambda rows: 2 <= sum(row[2] for row in rows) <= len(rows) - 2)
)
def test_written_tables_come_back_exactly(rows: list[tuple[float, float, bool]]) -> None:
    lines = ["a,b,label"] + [f"{a!r},{b!r},{int(label)}" for a, b, label in rows]
    table = read_table("\n".join(lines).encode())
    np.testing.assert_array_equal(table.features, [row[:2] for row in rows])
    np.testing.assert_array_equal(table.labels, [row[2] for row in rows])
