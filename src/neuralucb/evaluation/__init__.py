"""Off-policy evaluation: what would a policy have earned on a log that another has made?"""

from neuralucb.evaluation.estimators import Rounds, Sums, add, estimates_of, logged_of, overlap_of
from neuralucb.evaluation.off_policy import FROZEN, evaluate, target_probabilities
from neuralucb.evaluation.records import METHODS, Estimate, Evaluation, Overlap
from neuralucb.evaluation.replay import Replay, replay, with_replay

__all__ = [
    "FROZEN",
    "METHODS",
    "Estimate",
    "Evaluation",
    "Overlap",
    "Replay",
    "Rounds",
    "Sums",
    "add",
    "estimates_of",
    "evaluate",
    "logged_of",
    "overlap_of",
    "replay",
    "target_probabilities",
    "with_replay",
]
