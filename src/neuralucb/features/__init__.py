"""Features as people have them: an encoder from nested JSON objects to vectors of one fixed size."""

from neuralucb.features.encoder import ARM_ID, Counts, Encoder
from neuralucb.features.vocabulary import Vocabulary, hashed_slot, own_slots

__all__ = ["ARM_ID", "Counts", "Encoder", "Vocabulary", "hashed_slot", "own_slots"]
