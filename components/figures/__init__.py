"""Figures as plain dicts in Plotly's JSON form, made from arrays; no Streamlit here."""

from .element_heatmap import element_heatmap
from .health_heatmap import health_heatmap
from .loss_curve import loss_curve
from .norm_curves import norm_curves
from .update_ratio_curves import update_ratio_curves

__all__ = [
    "element_heatmap",
    "health_heatmap",
    "loss_curve",
    "norm_curves",
    "update_ratio_curves",
]
