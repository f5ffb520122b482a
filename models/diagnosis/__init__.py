"""Why a loss or its gradients are not finite: which operation, on which line, with which numbers.

from models.diagnosis import diagnose

print(diagnose(lambda: loss(model(x), y), model.trainable_variables))
"""

from .diagnose import diagnose
from .report import Diagnosis, Health, Origin

__all__ = ["Diagnosis", "Health", "Origin", "diagnose"]
