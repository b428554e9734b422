"""Requests written one by one."""

import pytest

from sim.request import Request
from traces import BadInput
from traces.reading.listed_requests import parse


def test_an_entry_needs_only_its_output():
    assert parse([{"output": 5}, {"output": 8}]) == [
        Request("1", arrival=0, prompt=1, output=5),
        Request("2", arrival=0, prompt=1, output=8),
    ]


def test_every_key_reaches_the_request():
    entry = {"id": "x", "arrival": 7, "prompt": 3, "output": 2, "max_output": 9, "tenant": "t"}
    assert parse([entry]) == [Request("x", arrival=7, prompt=3, output=2, tenant="t", declared=9)]


def test_a_prompt_is_as_long_as_what_it_says():
    by_token, by_block = parse(
        [
            {"tokens": [5, 6, 7], "output": 2, "priority": -1, "adapter": "a"},
            {"blocks": [7, "x"], "block_size": 16, "output": 2},
        ]
    )
    assert by_token == Request("1", 0, prompt=3, output=2, tokens=(5, 6, 7), priority=-1, adapter="a")
    assert by_block == Request("2", 0, prompt=32, output=2, blocks=(7, "x"), block_size=16)


def test_the_last_block_may_be_partial():
    (request,) = parse([{"blocks": [7, 8], "block_size": 16, "prompt": 17, "output": 1}])
    assert request.prompt == 17


def test_entries_are_sorted_by_arrival_and_ties_keep_their_order():
    entries = [{"arrival": 5, "output": 1}, {"arrival": 0, "output": 1}, {"arrival": 5, "output": 1}]
    assert [request.id for request in parse(entries)] == ["2", "1", "3"]


def test_numbers_serve_as_names():
    (request,) = parse([{"id": 7, "tenant": 3, "output": 1}])
    assert (request.id, request.tenant) == ("7", "3")


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        (
            [{"output": 1}, {"id": "1", "output": 1}],
            "requests.1.id is '1', which requests.0 has; expected a new one",
        ),
        ([{"prompt": 1}], "requests.0.output is missing; expected a whole number of tokens"),
        ([{"output": 1, "outptu": 2}], "requests.0.outptu: unknown key; did you mean output?"),
        ([{"output": 0}], "requests.0.output is 0; expected a whole number from 1 to 2147483648"),
        ([{"output": -5}], "requests.0.output is -5; expected a whole number from 1 to 2147483648"),
        ([{"output": 2.0}], "requests.0.output is 2.0; expected a whole number from 1 to 2147483648"),
        (
            [{"output": True}],
            "requests.0.output is True; expected a whole number from 1 to 2147483648",
        ),
        (
            [{"output": None}],
            "requests.0.output is None; expected a whole number from 1 to 2147483648",
        ),
        (
            [{"output": 1}, {"output": 1, "prompt": "x"}],
            "requests.1.prompt is 'x'; expected a whole number from 1 to 2147483648",
        ),
        (
            [{"output": 1, "arrival": -1}],
            "requests.0.arrival is -1; expected a whole number from 0 to 4611686018427387904",
        ),
        (
            [{"output": 5, "max_output": 4}],
            "requests.0.max_output is 4; expected a whole number from 5 to 2147483648",
        ),
        (
            [{"output": 5, "prompt": 3, "tokens": [1, 2]}],
            "requests.0.tokens has 2 tokens; expected as many as its prompt, 3",
        ),
        (
            [{"output": 5, "prompt": 16, "blocks": [1, 2], "block_size": 16}],
            "requests.0.blocks has 2 blocks of 16 tokens; expected 1 for its prompt, 16",
        ),
        (
            [{"output": 5, "tokens": [1, -2]}],
            "requests.0.tokens.1 is -2; expected token ids, whole numbers of at least 0",
        ),
        (
            [{"output": 5, "tokens": []}],
            "requests.0.tokens is []; expected a list of token ids, whole numbers of at least 0",
        ),
        (
            [{"output": 5, "blocks": [1.5], "block_size": 4}],
            "requests.0.blocks.0 is 1.5; expected block ids, whole numbers or text",
        ),
        (
            [{"output": 5, "blocks": [1]}],
            "requests.0.block_size is missing; expected how many tokens a block has",
        ),
        (
            [{"output": 5, "block_size": 4}],
            "requests.0.block_size is given without blocks; expected both or neither",
        ),
        (
            [{"output": 5, "tokens": [1], "blocks": [1], "block_size": 1}],
            "requests.0 has tokens and blocks; expected one of them",
        ),
        ([{"output": 5, "tenant": None}], "requests.0.tenant is None; expected text"),
        ([{"output": 5, "id": ""}], "requests.0.id is ''; expected text"),
        (["a"], "requests.0 is 'a'; expected keys and values"),
        ([], "requests: the list is empty; expected at least one request"),
        ("abc", "requests is 'abc'; expected a list of requests"),
        ({"output": 1}, "requests is {'output': 1}; expected a list of requests"),
    ],
)
def test_a_bad_entry_is_named(entries, expected):
    with pytest.raises(BadInput) as caught:
        parse(entries)
    assert str(caught.value) == expected
