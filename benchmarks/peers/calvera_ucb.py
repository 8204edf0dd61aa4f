"""Calvera's NeuralUCB: forward, record_feedback and a Lightning trainer's fit, as its README shows.

Its diagonal Z and Adam are its own; width, ν and λ, and when it trains, are those of plain_torch on labelled data: its
default λ = 1 is a weight decay that unlearns everything.
"""

import logging
import warnings

import lightning
import numpy as np
import torch
from calvera.bandits import NeuralUCBBandit
from calvera.utils.multiclass import MultiClassContextualizer
from streams import Stream

__all__ = ["Calvera", "make"]


def make(stream: Stream, variant: str) -> "Calvera":
    """The player."""
    torch.set_num_threads(1)
    torch.manual_seed(stream.seed)
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    logging.getLogger("calvera").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore")
    return Calvera(stream)


class Calvera:
    """One round at a time; trains after every round up to 2000, then after every 100th."""

    def __init__(self, stream: Stream) -> None:
        width, inputs = (100, stream.arms * stream.dim) if stream.shared else (20, stream.dim)
        self.contextualize = MultiClassContextualizer(stream.arms) if stream.shared else None
        network = torch.nn.Sequential(torch.nn.Linear(inputs, width), torch.nn.ReLU(), torch.nn.Linear(width, 1))
        self.bandit = NeuralUCBBandit(
            n_features=inputs, network=network, exploration_rate=1e-5, weight_decay=1e-5,
            min_samples_required_for_training=100, initial_train_steps=2000,
        )  # fmt: skip

    def select(self, contexts: np.ndarray) -> int:
        given = torch.from_numpy(contexts)[None]
        self.actions = given if self.contextualize is None else self.contextualize(given)
        chosen, _ = self.bandit(self.actions)
        return int(chosen[0].argmax())

    def update(self, contexts: np.ndarray, arm: int, reward: float) -> None:
        self.bandit.record_feedback(self.actions[:, arm : arm + 1], torch.tensor([[reward]], dtype=torch.float32))
        if self.bandit.should_train_network:
            trainer = lightning.Trainer(
                max_epochs=1, enable_progress_bar=False, enable_model_summary=False, enable_checkpointing=False,
                logger=False, accelerator="cpu",
            )  # fmt: skip
            trainer.fit(self.bandit)
