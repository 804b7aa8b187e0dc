"""Who comes after whom, in layers that can be drawn."""

from __future__ import annotations

import random

import pytest

from mam_core.operations.graph import Graph, graph, of_group
from mam_core.records import Status
from mam_core.summaries import Summary
from tests.console.story import summary


def job(name: str, *parents: str, group: str | None = None, order: int = 0) -> Summary:
    made = summary(order or 1, parents=" ".join(parents), group=group)
    return made._replace(job_id=name)


def chain(*names: str) -> list[Summary]:
    return [job(name, *names[at - 1 : at]) for at, name in enumerate(names)]


class TestLayers:
    def test_every_parent_stands_above(self) -> None:
        told = graph([job("c", "a", "b"), job("a"), job("b", "a"), job("d", "a"), job("lone")])
        assert told.layers == (("a",), ("b", "d"), ("c",))
        assert told.nodes["c"].parents == ("a", "b")
        assert told.nodes["a"].children == ("c", "b", "d")
        assert (told.alone, told.edges) == (1, 4)
        assert told.above("c") == {"a", "b"}
        assert told.below("a") == {"b", "c", "d"}
        assert told.below("nobody") == set()

    def test_a_parent_that_is_gone_keeps_its_place(self) -> None:
        told = graph([job("b", "cleaned")])
        assert told.layers == (("cleaned",), ("b",))
        assert told.nodes["cleaned"].is_gone
        assert told.nodes["b"].status is Status.PENDING

    def test_children_stand_near_their_parents(self) -> None:
        told = graph([job("p1", order=1), job("p2", order=2), job("y", "p2"), job("x", "p1")])
        assert told.layers == (("p1", "p2"), ("x", "y"))

    def test_nothing_is_a_graph_too(self) -> None:
        assert graph([]) == Graph({}, (), 0)

    @pytest.mark.parametrize("names", [("a", "b", "c"), ("a", "b")])
    def test_a_circle_that_somebody_wrote_by_hand_is_still_drawn(
        self, names: tuple[str, ...]
    ) -> None:
        told = graph([job(names[0], names[-1]), *chain(*names)[1:], job("self", "self")])
        assert set(told.nodes) == set(names)
        assert sum(node.in_circle for node in told.nodes.values()) == 1


class TestFolding:
    def test_a_group_becomes_one_node(self) -> None:
        jobs = [
            job("a", group="g"),
            job("b", "a", group="g"),
            job("c", "b"),
            job("d", "c", group="h")._replace(status=Status.RUNNING),
        ]
        told = graph(jobs, {"g", "h"})
        assert told.layers == ((of_group("g"),), ("c",), (of_group("h"),))
        first = told.nodes[of_group("g")]
        assert first.is_folded
        assert first.statuses == {Status.PENDING: 2}
        assert first.parents == ()
        assert not told.nodes["c"].is_folded

    def test_groups_that_wait_for_each_other_are_drawn_all_the_same(self) -> None:
        told = graph(
            [job("a", group="g"), job("b", "a", group="h"), job("c", "b", group="g")], {"g", "h"}
        )
        assert len(told.nodes) == 2
        assert sum(node.in_circle for node in told.nodes.values()) == 1


def test_any_forest_is_laid_out_whole() -> None:
    chance = random.Random(11)
    for _ in range(40):
        count = chance.randrange(1, 60)
        jobs = []
        for number in range(count):
            parents = {f"n{chance.randrange(number)}" for _ in range(chance.randrange(4)) if number}
            group = chance.choice([None, "g", "h"])
            jobs.append(job(f"n{number}", *sorted(parents), group=group, order=number + 1))
        told = graph(jobs)
        assert sorted(name for layer in told.layers for name in layer) == sorted(told.nodes)
        for node in told.nodes.values():
            assert not node.in_circle
            assert told.layers[node.layer][node.place] == node.name
            depths = [told.nodes[parent].layer for parent in node.parents]
            assert node.layer == (max(depths) + 1 if depths else 0)
        folded = graph(jobs, {"g"})
        assert sum(sum(node.statuses.values()) for node in folded.nodes.values()) == len(told.nodes)
