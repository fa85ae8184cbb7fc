"""The file that a person edits: read back to the last bit, and every mistake on its line."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from moie.errors import InputError
from moie.explanation.order import removals
from moie.policy import file as policy_file
from moie.policy.mixture import Mixture
from moie.surgery import lines
from moie.surgery.draft import built
from moie.surgery.from_toml import from_toml
from moie.surgery.lines import Lines
from moie.surgery.to_toml import to_toml
from tests import tiny
from tests.surgery.test_draft import a_policy

DATA = Path(__file__).parent.parent / "data"


def read(text: str, policy: Mixture) -> Mixture:
    return built(from_toml(text, policy, "mine.toml"), policy)


def refused(text: str, policy: Mixture) -> str:
    with pytest.raises(InputError) as caught:
        read(text, policy)
    return str(caught.value)


def line_of(text: str, part: str, which: int = 0) -> int:
    """The number of a line that has some text in it."""
    return [i for i, line in enumerate(text.split("\n"), 1) if part in line][which]


def test_unchanged_it_is_the_same_policy() -> None:
    odd = np.array([-0.0, 5e-324, 1e22])
    for policy in (
        a_policy(),
        a_policy(prototypes=np.stack([odd, -odd, 1 / 3 + odd]), metric=np.array([1e-5, 1, 1e16])),
        a_policy(labels=('say "ah"', "back\\slash # no comment", "ü ] = 道"), temperature=1e-7),
        a_policy(actions=np.array([[0.1], [5.0], [-7.0]])),
        a_policy(feature_names=("a", "a", "b\x1b[31m\n\x7f"), action_names=("x.y = 'z'",)),
        replace(a_policy(), task="my_module:Odd\x1b-v0", trained={"steps": 10**9}),
    ):
        text = to_toml(policy)
        assert all(line.isprintable() for line in text.split("\n"))
        assert read(text, policy) is policy
        assert read(text.replace("\n", "\r\n"), policy) is policy


def test_each_change_is_that_change_and_nothing_else() -> None:
    policy = a_policy()
    text = to_toml(policy)
    renamed = read(text.replace('label = ""', 'label = "push off"', 1), policy)
    assert renamed.labels == ("push off", "", "")
    assert [one["part"] for one in renamed.edits] == ["label"]
    assert [renamed.by_hand(k) for k in range(3)] == [(), (), ()]
    heavy = read(text.replace(f"weight = {float(policy.weights[1])!r}", "weight = 4"), policy)
    assert heavy.weights.tolist() == [policy.weights[0], 4.0, policy.weights[2]]
    assert policy_file.to_bytes(
        replace(heavy, weights=policy.weights, edits=())
    ) == policy_file.to_bytes(policy)


def block(text: str, k: int) -> str:
    """All lines of an expert."""
    return "[[expert]]" + text.split("[[expert]]")[k + 1]


def test_experts_are_deleted_and_added_and_their_order_does_not_matter() -> None:
    policy = a_policy()
    text = to_toml(policy) + "\n"
    first, second = block(text, 0), block(text, 1)
    new = second.replace("id = 1\n", "").replace('label = ""', 'label = "mine"')
    changed = read(text.replace(first, "").replace(second, "") + new + first, policy)
    assert changed.labels == ("", "", "mine")
    assert [one and one.seed for one in changed.origins] == [77, 5, None]
    assert changed.prototypes.tolist() == policy.prototypes[[0, 2, 1]].tolist()
    assert [one["part"] for one in changed.edits] == ["deleted", "added"]
    turned = text.split("[[expert]]")
    same = "[[expert]]".join([turned[0], *(part.rstrip() + "\n" for part in turned[:0:-1])])
    assert read(same, policy) is policy


def test_a_file_of_another_policy_is_one_mistake() -> None:
    """Not one for each feature that the other has and this one has not."""
    other = a_policy(feature_names=("x", "y", "z"), action_names=("pull",), labels=("a", "b", "c"))
    text = to_toml(other)
    said = refused(text, a_policy())
    assert said.startswith(f"mine.toml, line {line_of(text, 'policy = ')}: policy is '")
    assert "this file was written from another policy" in said
    assert "\n" not in said


def test_other_ways_to_write_the_same() -> None:
    policy = a_policy()
    weight, torque = policy.weights.tolist(), policy.actions[:, 0].tolist()
    rows = [
        ", ".join(f'"{n}" = {v!r}' for n, v in zip(policy.feature_names, row, strict=True))
        for row in policy.prototypes.tolist()
    ]
    inline = [
        f"{{ id = {k}, weight = {weight[k]!r}, prototype = {{ {rows[k]} }}, "
        f"action.torque = {torque[k]!r} }}"
        for k in range(3)
    ]
    text = "temperature = 0.5\nexpert = [\n" + ",\n".join(inline) + "\n]\n"
    assert read(text, policy) is policy
    ones = "[metric]\n" + "".join(f"'{name}' = 1\n" for name in policy.feature_names)
    assert read(f"{text}{ones}", policy) is policy
    assert "mine.toml, line 2: weight of expert 1 is 'x'" in refused(
        text.replace(f"weight = {weight[1]!r}", "weight = 'x'"), policy
    )


def swapped(text: str, old: str, new: str, which: int = 0) -> str:
    """The text with one of the places where `old` stands changed."""
    parts = text.split(old)
    assert len(parts) > which + 1
    return old.join(parts[: which + 1]) + new + old.join(parts[which + 1 :])


def test_all_mistakes_are_named_with_their_lines() -> None:
    policy = a_policy(labels=("a", "b", "c"), metric=np.array([1.0, 2.0, 3.0]))
    text = to_toml(policy)
    for old, new, which in (
        ("temperature = 0.5", "temperature = true", 0),
        ('"sin of angle" = 2.0', '"sin of angle" = 0', 0),
        ("[expert.prototype]", "colour = 3\n[expert.prototype]", 0),
        ('"turning speed" = ', '"turning sped" = ', 1),
        ('label = "b"', 'label = "a"', 0),
        ("weight = ", "weight = -", 1),
        ('"torque" = -1', '"torque" = -17', 0),
        ("id = 2", "id = 3", 0),
        ("[expert.action]", "[expert.actions]", 2),
    ):
        text = swapped(text, old, new, which)

    def at(part: str, which: int = 0) -> str:
        return f"line {line_of(text, part, which)}: "

    weight, torque = -policy.weights.tolist()[1], float(text.split('"torque" = ')[2].split()[0])
    assert refused(text, policy).split("\n  ") == [
        "mine.toml has 11 mistakes; nothing was written",
        at("temperature") + "temperature is True, expected a number",
        at('angle" = 0') + "metric of 'sin of angle' is 0.0, expected a number from 1e-30 to 1e+30",
        at("colour") + "unknown key 'colour'; known are id, label, weight, prototype, action",
        at("[expert.prototype]")
        + "prototype of expert 0 \"a\": feature 'turning speed' is missing, expected a number",
        at('turning sped"') + "unknown feature in the prototype of expert 0 \"a\": 'turning sped'; "
        "did you mean 'turning speed'?",
        at('label = "a"', 1) + "label is 'a', expected one that no other expert has",
        at("weight = -")
        + f'weight of expert 1 "a" is {weight!r}, expected a number from 0 to 1e+60',
        at("-17")
        + f"action 'torque' of expert 1 \"a\" is {torque}, expected a number from -2 to 2",
        at("[[expert]]", 2)
        + 'action of expert 3 "c" is missing, expected a table with a number for each name',
        at("id = 3") + "there is no expert 3, expected a number from 0 to 2",
        at("[expert.actions]") + "unknown key 'actions'; did you mean 'action'?",
    ]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("id = 1", "id = 0", "line <id = 0/1>: expert 0 is there twice, expected once"),
        ("id = 1", "id = 1.0", "line <id = 1>: id is 1.0, expected the number of an expert"),
        ("id = 1", "id = true", "line <id = true>: id is True, expected the number of an expert"),
        (
            "id = 1",
            "id = -1",
            "line <id = -1>: there is no expert -1, expected a number from 0 to 2",
        ),
        ('label = ""', "label = 5", "line <label = 5>: label is 5, expected a text"),
        ('label = ""', r'label = "a\nb"', r"line <label = >: label is 'a\nb', expected a text of"),
        ("weight = ", "wait = ", "line <wait>: unknown key 'wait'; did you mean 'weight'?"),
        ("weight = ", "weight = [", "line <[expert.prototype]>: not TOML: Unclosed array"),
        ("weight = ", "weight = inf # ", "line <weight = >: weight of expert 0 is inf, expected a"),
        ("weight = ", "weight = nan # ", "line <weight = >: weight of expert 0 is nan, expected a"),
        ("weight = ", f"weight = {'9' * 400} # ", "line <weight = >: weight of expert 0 is 9999"),
        ("weight = ", f"weight = {'9' * 5000} # ", "line <weight = >: not TOML: Exceeds the limit"),
        ("weight = ", f"weight = {'[' * 5000} # ", "line <weight = >: not TOML: it is nested too"),
        ("weight = ", "weight = 1979-05-27 # ", "line <weight = >: weight of expert 0 is datetime"),
        ("temperature = 0.5", "", "line 1: temperature is missing, expected a number"),
        ("temperature", "temprature", "line <temprature>: unknown key 'temprature'; did you mean"),
        ("[[expert]]", "[[expert]", "line <[[expert]>: not TOML: Expected ']]' at the end of an"),
        ("[[expert]]", "[expert]", "line <[[expert]]>: not TOML: Cannot"),
        ("[[expert]]", '[[expert]]\nx = """\n', 'line <"torque"/2>: not TOML: Unterminated stri'),
        ("[expert.action]", "[expert.prototype]", "line <[expert.prototype]/1>: not TOML: Cannot"),
        ('"torque" = ', '"torque" = "', "line <torque>: not TOML: "),
        ('"torque" = ', '"torque" = 0x', "line <torque>: not TOML: "),
        ('"torque" = ', "torque.x = ", "line <torque.x>: action of expert 0: joint 'torque' is {'"),
        ("[expert.prototype]", "prototype = 3\n[expert.proto]", "line <prototype = 3>: prototype "),
        ("policy = ", 'policy = "abc" #', "line <policy = >: policy is 'abc', expected '"),
        ("policy = ", "policy = 5 #", "line <policy = >: policy is 5, expected '"),
        ("\npolicy = ", "\nheirs = 5\npolicy = ", "line <heirs>: heirs is 5, expected a table"),
    ],
)
def test_a_mistake_is_named_with_its_line(old: str, new: str, words: str) -> None:
    policy = a_policy()
    text = swapped(to_toml(policy), old, new)

    def number(found: re.Match[str]) -> str:
        part, _, which = found[1].partition("/")
        return str(line_of(text, part, int(which or 0)))

    said = refused(text, policy)
    assert re.sub("<(.+?)>", number, words) in said
    assert "sys." not in said  # Python's advice to programmers


def test_a_file_without_experts_and_a_list_of_something_else() -> None:
    policy = a_policy()
    start = to_toml(policy).split("[[expert]]")[0]
    assert "there is no expert, expected at least one" in refused(start, policy)
    said = refused(start + "expert = 5", policy)
    assert "expert is 5, expected tables: [[expert]]" in said
    said = refused("temperature = 1.0\nexpert = [\n1,\n]", policy)
    assert "line 2: expert is 1, expected a table: [[expert]]" in said


def test_lines_are_found_behind_values_of_many_lines() -> None:
    text = """\
a = [  # one

  1,
  2,
]
b = '''
[not a table]
c = 5
'''
[t.u]
'd e'.f = {g = 1, h = [{i = 2}]}

[[v]]
w = 1
[[v]]
[v.x]
w = 2
[[v.y]]
[[v.y]]
z = 3
"""
    lines = Lines(text)
    expected = {
        ("a",): 1,
        ("b",): 6,
        ("t", "u"): 10,
        ("t", "u", "d e", "f", "h", 0, "i"): 11,
        ("v", 0): 13,
        ("v", 0, "w"): 14,
        ("v", 1): 15,
        ("v", 1, "x", "w"): 17,
        ("v", 1, "y", 1, "z"): 20,
        ("v", 1, "x", "missing", "and more"): 16,
        ("missing",): 1,
    }
    assert {path: lines[path] for path in expected} == expected


def test_long_values_are_not_read_line_by_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file with many of them took minutes."""
    tried = []
    loads = lines._loads
    monkeypatch.setattr(lines, "_loads", lambda text: tried.append(text) or loads(text))
    text = "".join(f"k{i} = [\n" + "1,\n" * 990 + "]\n" for i in range(3))
    assert Lines(text)["k2",] == 2 * 992 + 1
    assert len(tried) == 6  # its first line, and the whole


# --- the same as pruning -------------------------------------------------------------------------


def test_deleting_what_prune_deletes_gives_the_same_policy() -> None:
    policy = tiny.policy("Pendulum-v1", experts=6)
    alike = {name: getattr(policy, name)[[0, 1, 0, 1, 0, 2]] for name in ("prototypes", "actions")}
    policy = replace(policy, **alike)
    states = np.random.default_rng(3).normal(size=(200, 3))
    text = to_toml(policy) + "\n"
    blocks = [block(text, k).rstrip("\n") for k in range(6)]
    heirs: list[str] = []
    for smaller, removal in removals(policy, states):
        if removal["removed"] is not None:
            text = text.replace(blocks[removal["removed"]], "")
        if removal["heir"] is not None:
            heirs.append(f"{removal['removed']} = {removal['heir']}")
        edited = read("\n".join([text, "[heirs]", *heirs]), policy)
        for name in ("prototypes", "actions", "weights"):
            assert getattr(edited, name).tobytes() == getattr(smaller, name).tobytes()
        assert edited.origins == smaller.origins
        assert edited.means(states).tobytes() == smaller.means(states).tobytes()
    assert len(heirs) >= 3
    assert smaller.n_experts == 1


@pytest.mark.parametrize(
    ("heir", "words"),
    [
        ("0 = 2", "heirs: '0' is not there, expected the id of an expert that was deleted"),
        ("7 = 2", "heirs: '7' is not there, expected the id of an expert that was deleted"),
        ("x = 2", "heirs: 'x' is not there, expected the id of an expert that was deleted"),
        ("1 = 1", "the heir of expert 1 is 1, expected the id of an expert"),
        ("1 = 9", "the heir of expert 1 is 9, expected the id of an expert"),
        ("1 = 'a'", "the heir of expert 1 is 'a', expected the id of an expert"),
        ("1 = true", "the heir of expert 1 is True, expected the id of an expert"),
    ],
)
def test_a_bad_heir_is_named(heir: str, words: str) -> None:
    policy = a_policy()
    text = to_toml(policy) + "\n"
    text = text.replace(block(text, 1), "") + "\n[heirs]\n" + heir
    line = len(text.split("\n"))
    assert f"mine.toml, line {line}: {words}" in refused(text, policy)
