"""Cost models: how plans compare, learnt from measurements."""

from weft.tune.models.cost_model import CostModel
from weft.tune.models.named_models import MODELS, make_model
from weft.tune.models.samples import Samples
from weft.tune.models.untrained import Analytical, Random, Shuffled

__all__ = ["MODELS", "Analytical", "CostModel", "Random", "Samples", "Shuffled", "make_model"]
