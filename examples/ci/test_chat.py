"""Statements about the service that hold whatever the numbers of the baseline are."""

from slotstep.testing import assert_metric


def test_agents_do_not_wait_longer_than_two_seconds(slotstep_run):
    assert_metric(slotstep_run("chat.yaml"), "tenants.agents.wait_s.max", at_most=2)


def test_half_of_the_slots_are_enough(slotstep_run):
    assert_metric(slotstep_run("chat.yaml", "engine.slots=32"), "attainment", at_least=0.95)
