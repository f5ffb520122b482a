"""The recurrence of seq2seq: its graph, its mask, its clipping on the way back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from models.lazy import tf
from models.scenarios import scenario
from models.scenarios.seq2seq import clip_on_the_way_back, draw, not_padding


def nodes(seq_len: int) -> int:
    """Operations in the graph of the loss and its gradients, loop bodies included."""
    chosen = scenario("seq2seq")
    config = chosen.config("as-posted", {"seq_len": seq_len, "hidden": 8})
    dataset = chosen.load(config, None)
    arrays = chosen.initialise(config, dataset, np.random.default_rng(0))
    parameters = {name: tf.constant(a, tf.float32) for name, a in arrays.items()}
    batch = {name: tf.constant(a[:4]) for name, a in dataset.train.items()}

    def gradients(parameters: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(parameters)
            loss = chosen.loss(parameters, batch, config)
        return tape.gradient(loss, parameters)

    graph = tf.function(gradients, autograph=False).get_concrete_function(parameters)
    definition = graph.graph.as_graph_def()
    return len(definition.node) + sum(len(f.node_def) for f in definition.library.function)


def test_the_graph_does_not_grow_with_seq_len() -> None:
    assert nodes(20) == nodes(100)


def test_padding_begins_after_the_first_eos() -> None:
    ids = tf.constant([[5, 3, 0, 0], [5, 3, 4, 0], [0, 0, 0, 0]])
    expected = [[True, True, True, False], [True] * 4, [True, False, False, False]]
    assert not_padding(ids).numpy().tolist() == expected


def test_the_mask_makes_the_loss_independent_of_the_padding(make_trainer: Any) -> None:
    losses = [
        make_trainer("seq2seq", "mended", dtype="float64", seq_len=n).advance(1).loss[0]
        for n in (12, 30)
    ]
    assert losses[0] == pytest.approx(losses[1], rel=1e-12)


def test_clipping_on_the_way_back_leaves_the_value_alone() -> None:
    x = tf.constant([1.0, -2.0, 0.1])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = clip_on_the_way_back(x, tf.constant(0.5))
        total = tf.reduce_sum(y * tf.constant([3.0, -4.0, 0.25]))
    assert y.numpy().tolist() == x.numpy().tolist()
    assert tape.gradient(total, x).numpy().tolist() == [0.5, -0.5, 0.25]


@pytest.mark.parametrize(("rows", "columns"), [(30, 20), (20, 30)])
def test_orthogonal_weights_are_orthogonal(rows: int, columns: int) -> None:
    w = draw({"initialiser": "orthogonal"}, np.random.default_rng(0), rows, columns)
    product = w.T @ w if rows >= columns else w @ w.T
    np.testing.assert_allclose(product, np.eye(min(rows, columns)), atol=1e-12)


def test_glorot_weights_have_glorot_variance() -> None:
    w = draw({"initialiser": "glorot"}, np.random.default_rng(0), 300, 500)
    assert w.var() == pytest.approx(2 / 800, rel=0.02)
    assert np.abs(w).max() <= np.sqrt(6 / 800)


def test_unit_normal_and_free_std() -> None:
    generator = np.random.default_rng(0)
    unit = draw({"initialiser": "unit_normal"}, generator, 300, 300)
    free = draw({"initialiser": "std", "weight_std": 0.02}, generator, 300, 300)
    assert unit.std() == pytest.approx(1.0, rel=0.02)
    assert free.std() == pytest.approx(0.02, rel=0.02)
