"""A policy in front of real traffic: late rewards, changing arms and restarts, and nothing acknowledged is lost."""

from neuralucb.online.bandit import OnlineBandit
from neuralucb.online.environments import Played, as_environment, play_environment
from neuralucb.online.health import Health
from neuralucb.online.ledger import Decision, Explanation
from neuralucb.online.lessons import Lesson
from neuralucb.online.removal import Removal
from neuralucb.runtime.errors import StorageError

__all__ = [
    "Decision",
    "Explanation",
    "Health",
    "Lesson",
    "OnlineBandit",
    "Played",
    "Removal",
    "StorageError",
    "as_environment",
    "play_environment",
]
