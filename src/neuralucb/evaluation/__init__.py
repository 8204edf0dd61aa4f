"""Off-policy evaluation: what would a policy have earned, judged by the log of another?"""

from neuralucb.evaluation.estimators import FROZEN, METHODS, Rounds, Sums, add, estimates_of, logged_of, overlap_of
from neuralucb.evaluation.off_policy import evaluate, target_probabilities
from neuralucb.evaluation.records import Estimate, Evaluation, Overlap
from neuralucb.evaluation.replay import Replay, replay, with_replay
from neuralucb.evaluation.split import evaluate_after_training
from neuralucb.evaluation.tuning import TunedOnLog, tune_on_log

__all__ = [
    "FROZEN",
    "METHODS",
    "Estimate",
    "Evaluation",
    "Overlap",
    "Replay",
    "Rounds",
    "Sums",
    "TunedOnLog",
    "add",
    "estimates_of",
    "evaluate",
    "evaluate_after_training",
    "logged_of",
    "overlap_of",
    "replay",
    "target_probabilities",
    "tune_on_log",
    "with_replay",
]
