"""Why a gradient is finite in a broken step, where that can be told from the program itself."""

from __future__ import annotations

import tensorflow as tf

from models.diagnosis import diagnose
from models.scenarios import scenario
from models.training.trainer import Trainer


def test_nothing_is_spared_in_a_finite_step() -> None:
    x = tf.Variable(2.0)
    assert diagnose(lambda: x * x, {"x": x}).spared == {}


def test_what_the_loss_does_not_depend_on() -> None:
    x, y = tf.Variable(0.0), tf.Variable(1.0)
    d = diagnose(lambda: tf.math.log(x), {"x": x, "y": y})
    assert d.spared == {"y": "is none: the loss does not depend on it"}


def test_what_branches_off_before() -> None:
    """d(root + late)/d(late) is 1 and is known before the root is differentiated."""
    x, late = tf.Variable(0.0), tf.Variable(1.0)

    def loss() -> tf.Tensor:
        root = tf.sqrt(x)
        return root * 2.0 + tf.exp(late)

    d = diagnose(loss, {"x": x, "late": late})
    assert d.spared.keys() == {"late"}
    assert "branches off before it" in d.spared["late"] or "nothing in common" in d.spared["late"]


def test_what_takes_none_of_the_bad_elements() -> None:
    """Of one gradient each variable gets its own part."""
    x, z = tf.Variable([0.0, 1.0]), tf.Variable([4.0, 9.0])

    def loss() -> tf.Tensor:
        both = tf.concat([x, z], axis=0)
        return tf.reduce_sum(tf.sqrt(both))

    d = diagnose(loss, {"x": x, "z": z})
    assert d.spared.keys() == {"z"}
    assert "loses the non-finite elements in" in d.spared["z"]
    assert "`SplitV`" in d.spared["z"]  # by which ConcatV2 is differentiated


def test_the_decoder_is_passed_before_the_encoder_breaks() -> None:
    chosen = scenario("seq2seq")
    config = chosen.config("as-posted", {})
    trainer = Trainer(chosen, config, chosen.load(config, None))
    trainer.advance(1)
    d = trainer.diagnose(trainer.snapshots[0])
    decoder = {name for name in d.variables if name.startswith("decoder.")}
    assert d.spared.keys() == decoder
    assert all("branches off before it" in why for why in d.spared.values())
    assert "Spared, whose gradient" in str(d)
    assert set(d.to_dict()["spared"]) == decoder
