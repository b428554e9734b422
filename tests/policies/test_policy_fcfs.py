"""First come, first served."""

from sim_stories import engine, happenings, job, jobs, run, times

from policies.fcfs import FirstComeFirstServed
from sim.sequence import Sequence


def test_those_who_came_first_go_first():
    log = run(jobs(a=3, b=1, c=2), engine(slots=1, order=FirstComeFirstServed()))
    assert times(log, "admitted") == {"a": 0, "b": 3, "c": 4}


def test_requests_of_one_instant_go_in_the_order_given():
    log = run([job(name, 1, arrival=5) for name in "zyx"], engine(slots=1, order=FirstComeFirstServed()))
    assert [event.who for event in happenings(log, "admitted")] == ["z", "y", "x"]


def test_a_flood_of_one_tenant_makes_the_other_wait_for_all_of_it():
    requests = [job(f"A{i}", 1, tenant="A") for i in range(100)] + [job(f"B{i}", 1, tenant="B") for i in range(10)]
    log = run(requests, engine(slots=1, order=FirstComeFirstServed()))
    assert max(time for who, time in times(log, "finished").items() if who.startswith("B")) == 110


def test_the_line_lets_anyone_leave_and_the_preempted_return_to_its_front():
    line = FirstComeFirstServed()
    a, b, c = (Sequence(job(name, 1), index) for index, name in enumerate("abc"))
    for seq in (a, b, c):
        line.push(seq, now=0, step=0)
    line.pop(b)
    assert list(line) == [a, c]
    line.pop(a)
    line.push_back(b, now=0, step=0)
    assert list(line) == [b, c]
    assert line.head(now=0, step=0) is b
    assert len(line) == 2
    assert line.next_change(now=0, step=0) == (None, None)
