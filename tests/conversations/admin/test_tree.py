from __future__ import annotations

from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from conversations.admin.tree import LightRevision, TreeRow, tree_rows


def revision(pk: int, parent: int | None) -> LightRevision:
    return LightRevision(pk, parent, pk * 10, "turn", "", False, timezone.now())


def drawn(parents: dict[int, int | None], head: int | None) -> list[TreeRow]:
    return tree_rows([revision(pk, parent) for pk, parent in parents.items()], head)


def test_a_straight_conversation_goes_straight_down() -> None:
    rows = drawn({1: None, 2: 1, 3: 2}, 3)
    assert [(row.revision.pk, row.depth, row.parent, row.head, row.tip) for row in rows] == [
        (1, 0, None, False, False),
        (2, 0, 10, False, False),
        (3, 0, 20, True, True),
    ]


def test_branches_stand_indented_before_the_way_to_the_head_goes_on() -> None:
    rows = drawn({1: None, 2: 1, 3: 2, 4: 1, 5: 4, 6: 1}, 5)
    assert [(row.revision.pk, row.depth) for row in rows] == [(1, 0), (2, 1), (3, 1), (6, 1), (4, 0), (5, 0)]
    assert [(row.place, row.siblings) for row in rows] == [(1, 1), (1, 3), (1, 1), (3, 3), (2, 3), (1, 1)]
    assert [row.on_way for row in rows] == [True, False, False, False, True, True]


def test_several_beginnings_are_versions_of_each_other() -> None:
    rows = drawn({1: None, 2: None}, 2)
    assert [(row.revision.pk, row.depth, row.place, row.siblings) for row in rows] == [(1, 1, 1, 2), (2, 0, 2, 2)]


def test_damage_is_shown_where_it_is() -> None:
    rows = {row.revision.pk: row.problem for row in drawn({1: None, 2: 77, 3: 4, 4: 3}, 4)}
    assert rows == {
        1: "",
        2: "builds on a revision that is not here",
        3: "builds on revision 40, which is not older",
        4: "",
    }


parents = st.integers(1, 40).flatmap(
    lambda size: st.fixed_dictionaries({pk: st.none() | st.integers(1, size + 3) for pk in range(1, size + 1)})
)


@given(parents, st.none() | st.integers(1, 45))
def test_every_revision_is_there_once_after_its_parent(tree: dict[int, int | None], head: int | None) -> None:
    rows = drawn(tree, head)
    places = {row.revision.pk: at for at, row in enumerate(rows)}
    assert sorted(places) == sorted(tree)
    assert len(rows) == len(tree)
    for row in rows:
        if row.parent is not None:
            assert places[row.parent // 10] < places[row.revision.pk]


def test_a_deep_tree_of_branches_is_drawn_quickly() -> None:
    """Every second revision is a branch of a branch: no recursion, and no more rails than fit."""
    tree: dict[int, int | None] = {1: None}
    for pk in range(2, 5001):
        tree[pk] = pk - 1 if pk % 2 else max(1, pk - 2)
    rows = drawn(tree, 2)
    assert len(rows) == 5000
    assert max(len(row.rails) for row in rows) <= 12
