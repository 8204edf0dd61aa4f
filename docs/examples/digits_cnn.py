"""A convolutional network in Flax for scikit-learn's digits: images of 8 × 8 pixels, one output per class."""

import flax.linen as nn

from neuralucb.algorithms import register_network


class DigitsCNN(nn.Module):
    """One convolution, one hidden layer, one number per arm."""

    arms: int

    @nn.compact
    def __call__(self, x):
        """Scores of all arms, from the flat vector that a context is."""
        x = x.reshape(8, 8, 1)
        x = nn.relu(nn.Conv(8, (3, 3), strides=2)(x))
        x = nn.relu(nn.Dense(32)(x.ravel()))
        return nn.Dense(self.arms)(x)


@register_network("digits-cnn")
def digits_cnn(task, settings):
    """Convolution 3 × 3, 8 channels; 32 hidden units; one output per arm."""
    return DigitsCNN(task.shared_by)
