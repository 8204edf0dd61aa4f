"""Health and explanations can be read, and a drifting inverse is seen."""

import numpy as np
import pytest

from neuralucb import OnlineBandit
from tests.online.helpers import ARMS, PLAIN, contexts, make, play


def test_an_explanation_and_the_health_can_be_read():
    one = OnlineBandit(make(design="full"), schedule="10")
    decision = one.select(contexts())
    why = one.explain(decision.id)
    assert (why.status, why.reward, why.decision.arm) == ("pending", None, decision.arm)
    assert why.explored == (decision.position != int(np.argmax(decision.mean)))
    assert decision.id in str(why)
    assert len(str(why).splitlines()) == 2 + ARMS
    one.observe(decision.id, 2.0)
    assert one.explain(decision.id).reward == 2.0
    with pytest.raises(ValueError, match="was never made"):
        one.explain(one.ids.id_of(12))
    play(one, 30)
    health = one.health()
    assert health.inverse_drift < 1e-10
    assert health.smallest_variance > 0
    assert 0 <= health.explored <= 1
    assert health.belief_bytes > 0
    assert "pending" in str(health)


def test_a_drifting_inverse_is_seen():
    one = OnlineBandit(make(**PLAIN, design="full"), schedule="10")
    play(one, 10)
    z = one.state.belief.z
    one.state.belief = one.state.belief._replace(z=z._replace(inverse=1.01 * np.asarray(z.inverse)))
    assert one.health().inverse_drift > 1e-4
