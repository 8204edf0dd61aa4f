"""How long is rested after a lesson."""

from neuralucb.service.rest import Rest


def test_a_lesson_that_compiles_is_not_rested_for_and_does_not_lengthen_later_rests():
    rest = Rest(9.0)
    assert rest.after(8.0, was_compiled=False) == 0.0
    assert rest.after(0.5, was_compiled=True) == 0.0
    assert rest.after(8.0, was_compiled=False) == 9.0 * 0.5
    assert rest.after(6.0, was_compiled=False) == 9.0 * 0.5
    rest.after(0.5, was_compiled=True)
    assert rest.after(0.25, was_compiled=True) == 9.0 * 0.25
