"""What drafting costs, by hand."""

from __future__ import annotations

from sim.cost.drafted import Drafted
from sim.cost.forms import Affine, Unit
from sim.cost.shape import Shape

STEP = Affine(base=100, per_sequence=10, per_prefill_token=1, per_context_token=0.5)


def step(decodes=0, context=0, drafts=0, chunk=0):
    """The shape of a step."""
    shape = Shape()
    shape.decodes, shape.context, shape.drafts = decodes, context, drafts
    if chunk:
        shape.add_chunk(0, chunk)
    return shape


def test_looking_up_takes_time_where_a_sequence_decodes():
    cost = Drafted(STEP, 3, lookup=7)
    assert cost.step(step(decodes=2, context=40, drafts=6)) == 100 + 20 + 20 + 6 + 7
    assert cost.step(step(chunk=30)) == 130


def test_heads_take_a_share_of_a_step_of_one_token_each():
    # The step of 2 decodes alone takes 140: a tenth of it for each of 3 drafts.
    assert Drafted(STEP, 3, share=0.1).step(step(decodes=2, context=40, drafts=6)) == 146 + 42


def test_a_model_takes_a_pass_for_each_draft_and_computes_prompts():
    cost = Drafted(STEP, 3, model=Affine(base=5, per_prefill_token=0.5))
    assert cost.step(step(decodes=2, context=40, drafts=6)) == 146 + 3 * 5
    assert cost.step(step(decodes=2, context=40, drafts=6, chunk=30)) == 176 + (5 + 15) + 3 * 5


def test_a_run_is_its_steps():
    cost = Drafted(STEP, 2, share=0.25, model=Unit(3))
    single = [cost.step(step(decodes=2, context=40 + 2 * each)) for each in range(3)]
    assert cost.run(step(decodes=2, context=40), 3, [0, 1, 0]).tolist() == single


def test_drafts_share_the_weights():
    # A captured size of 8 holds 2 decodes and 6 drafts.
    from sim.cost.forms import Roofline

    cost = Roofline(per_token=10, graph_sizes=(1, 8, 16))
    assert cost.step(step(decodes=2, drafts=6)) == 80
    assert cost.step(step(decodes=2, drafts=7)) == 160
