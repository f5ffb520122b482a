"""Knobs that every scenario has."""

from __future__ import annotations

from collections.abc import Mapping

from .knobs import AnyKnob, Choice, KnobValue, Number, Toggle


def std_knob(default: float, shown_if: Mapping[str, tuple[KnobValue, ...]] | None = None) -> Number:
    """Standard deviation of the weights at the start."""
    return Number(
        name="weight_std",
        label="Initialiser's std",
        group="model",
        default=default,
        low=1e-3,
        high=2.0,
        scale="log",
        stage="data",
        shown_if=shown_if or {},
        help="Weights start at N(0, std²), biases at 0.",
    )


def common_knobs(
    *, learning_rate: float, batch_size: int, optimizer: str = "sgd", dtype: str = "float32"
) -> tuple[AnyKnob, ...]:
    """Dtype, clipping, optimiser, batch, seed and what to do at a non-finite gradient.

    The four arguments are the scenario's own defaults; `batch_size` 0 means all rows.
    """
    return (
        Choice(
            name="dtype",
            label="dtype",
            group="numerics",
            default=dtype,
            options={
                "float64": "float64",
                "float32": "float32",
                "float16": "float16",
                "bfloat16": "bfloat16",
            },
            help="Number format of the computation. With 16 bits the weights stay in float32, as "
            "in mixed-precision training; gradients are measured in 16 bits.",
        ),
        Toggle(
            name="loss_scaling",
            label="Dynamic loss scaling",
            group="numerics",
            default=False,
            shown_if={"dtype": ("float16", "bfloat16")},
            help="Multiplies the loss (2^15 at first) so that small gradients survive; an overflow "
            "skips the step and halves the scale.",
        ),
        Choice(
            name="on_bad",
            label="At a non-finite gradient",
            group="numerics",
            default="halt",
            options={"halt": "halt", "skip": "skip the update", "continue": "carry on"},
            stage="step",
            help="Halt before the update, leave the update out and go on, or apply it all the "
            "same.",
        ),
        Choice(
            name="clipping",
            label="Gradient clipping",
            group="clipping",
            default="off",
            options={
                "off": "off",
                "value": "by value",
                "norm": "by norm",
                "global_norm": "by global norm",
            },
            help="What is done to the gradients after they are computed: tf.clip_by_value, "
            "tf.clip_by_norm on each, or tf.clip_by_global_norm on all.",
        ),
        Number(
            name="clip_threshold",
            label="Clipping threshold",
            group="clipping",
            default=1.0,
            low=1e-4,
            high=1e4,
            scale="log",
            shown_if={"clipping": ("value", "norm", "global_norm")},
            help="Largest magnitude, norm or global norm that passes unchanged.",
        ),
        Choice(
            name="optimizer",
            label="Optimiser",
            group="optimiser",
            default=optimizer,
            options={"sgd": "SGD", "momentum": "momentum 0.9", "adam": "Adam"},
            help="Keras optimiser that applies the gradients.",
        ),
        Number(
            name="learning_rate",
            label="Learning rate",
            group="optimiser",
            default=learning_rate,
            low=1e-6,
            high=10.0,
            scale="log",
            help="Size of an update, relative to the (rescaled) gradient.",
        ),
        Number(
            name="batch_size",
            label="Batch size",
            group="data",
            default=batch_size,
            low=0,
            high=512,
            integer=True,
            stage="graph",
            unit="rows",
            help="Rows in a batch; 0 takes all rows in every step.",
        ),
        Number(
            name="seed",
            label="Seed",
            group="data",
            default=0,
            low=0,
            high=9999,
            integer=True,
            stage="data",
            help="Start of every random number: weights, batches, split of the data.",
        ),
    )
