"""Sizes to which arms are padded: few, at most a fifth too large, and compiled beside traffic."""

import threading

from neuralucb.algorithms import build
from neuralucb.online.context_shape import shape_of_policy
from neuralucb.service.arm_sizes import OFTEN, ArmSizes, fitting


def test_at_most_a_fifth_is_padding_and_there_are_few_sizes():
    assert [fitting(count) for count in (1, 2, 7, 8, 9, 10, 11, 16, 17, 20, 21, 33)] == [
        1, 2, 7, 8, 10, 10, 12, 16, 20, 20, 24, 40
    ]  # fmt: skip
    assert all(count <= fitting(count) <= 1.25 * count for count in range(1, 1000))
    assert len({fitting(count) for count in range(1, 1025)}) < 40


def test_a_size_that_comes_often_is_prepared_beside_traffic_and_used_from_then_on():
    prepared, done = [], threading.Event()

    def prepare(size):
        prepared.append(size)
        done.set()

    sizes = ArmSizes(16, 1, shape_of_policy(build("lin-ucb", dim=2), None), prepare)
    assert {sizes.of(9) for _ in range(OFTEN)} == {16}
    assert done.wait(30)
    sizes.close()
    assert sizes.of(9) == 10
    assert sizes.of(3) == 10
    assert sizes.of(12) == 16
    assert sizes.of(30) == 32  # nothing else is large enough
    assert prepared == [10]


def test_a_number_of_arms_that_is_known_is_compiled_for_itself_and_one_that_came_often_is_prepared_at_once():
    prepared = []
    sizes = ArmSizes(10, 1, shape_of_policy(build("lin-ucb", dim=2), None), prepared.append)
    assert sizes.of(9) == 10
    sizes.expect([6] * OFTEN + [10] * OFTEN + [3, 40])
    assert {sizes.of(6) for _ in range(OFTEN)} <= {6, 10}
    sizes.close()
    assert sizes.of(6) == 6
    assert sizes.of(3) == 6
    assert prepared == [6]
