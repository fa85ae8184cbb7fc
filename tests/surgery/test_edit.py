"""`moie edit` as a user types it: the policy, its price, and nothing half-written."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import moie
from moie.cli.main import main
from moie.policy import file as policy_file
from moie.runs.evaluation import paired_difference
from moie.surgery import price
from tests import tiny
from tests.surgery.test_draft import a_policy, changed
from tests.surgery.test_toml import block, swapped

DATA = Path(__file__).parent.parent / "data"
WALK = "tests.probes:Walk-v0"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A policy file, and beside it the file to edit, `mine.toml`."""
    path = a_policy().save(tmp_path / "policy.safetensors")
    (tmp_path / "mine.toml").write_text(moie.show(path, format="toml"))
    return path


def edit(file: Path, text: str, **options: object) -> moie.Edited:
    (file.parent / "mine.toml").write_text(text)
    return moie.edit(file, file.parent / "mine.toml", **({"episodes": 0} | options))


@pytest.mark.parametrize("name", ["mixture-v1", "mixture-v2-metric"])
def test_shown_and_read_back_a_file_has_the_same_bytes(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Files of earlier versions too, which this one would write with a digest."""
    before = DATA / f"{name}.safetensors"
    assert main(["show", str(before), "--format", "toml"]) == 0
    (tmp_path / "mine.toml").write_text(capsys.readouterr().out)
    words = ["--out", str(tmp_path / "new.safetensors"), "--episodes", "0"]
    for _ in range(2):  # the second time over the first
        assert main(["edit", str(before), str(tmp_path / "mine.toml"), *words]) == 0
        assert (tmp_path / "new.safetensors").read_bytes() == before.read_bytes()
    assert "no change by hand\n" in capsys.readouterr().out


@pytest.mark.parametrize("codec", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_files_of_other_editors_are_read(codec: str, newline: str, file: Path) -> None:
    toml = file.parent / "mine.toml"
    toml.write_text(toml.read_text(), codec, newline=newline)
    assert moie.edit(file, toml, episodes=0).path.read_bytes() == file.read_bytes()
    toml.write_text(toml.read_text(codec).replace("weight = ", "weight = -", 1), codec)
    number = [line[:6] for line in toml.read_text(codec).split("\n")].index("weight") + 1
    with pytest.raises(moie.InputError, match=f"line {number}: weight of expert 0 is -"):
        moie.edit(file, toml, episodes=0)


def test_a_run_is_edited(pendulum: Path, tmp_path: Path) -> None:
    run = moie.Run(pendulum)
    text = run.show(format="toml")
    (tmp_path / "mine.toml").write_text(text)
    same = run.edit(tmp_path / "mine.toml", out=tmp_path / "same.safetensors", episodes=0)
    assert same.path.read_bytes() == tiny.policy_bytes(pendulum)
    assert same.price is None
    (tmp_path / "mine.toml").write_text(swapped(text, 'label = ""', 'label = "push off"'))
    new = run.edit(tmp_path / "mine.toml", out=tmp_path / "new.safetensors", episodes=2, workers=1)
    assert moie.load(new.path).label(0) == 'expert 0 "push off"'
    assert new.price is not None
    assert new.price.mean.difference == new.price.sampled.difference == 0.0
    assert '# expert 0 "push off": ' in moie.show(new.path)


def test_the_command_says_what_changed_and_what_it_costs(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = swapped(moie.show(file, format="toml"), '"torque" = ', '"torque" = 0.5 # ')
    text = swapped(text, 'label = ""', 'label = "push off"')
    (file.parent / "mine.toml").write_text(text)
    words = ["edit", str(file), str(file.parent / "mine.toml"), "--episodes", "4", "--seed", "3"]
    assert main([*words, "--workers", "1"]) == 0
    out = file.parent / "policy-edited.safetensors"
    new = moie.load(out)
    assert isinstance(new, moie.MixturePolicy)
    assert new.actions[0, 0] == 0.5
    before, after = (moie.evaluate(one, episodes=4, seed=3, workers=1) for one in (file, out))
    lost, error = paired_difference(before.mean.returns, after.mean.returns)
    assert lost != 0
    old = a_policy().actions[0, 0]
    said = capsys.readouterr().out.splitlines()
    assert said == [
        "2 changes by hand",
        "  expert 0: label from '' to 'push off'",
        f"  expert 0 \"push off\": action 'torque' from {float(old)!r} to 0.5",
        "Pendulum-v1: 4 episodes of each kind on the same seeds, seed 3; ± is the standard error "
        "of the difference",
        said[4],
        f"  mean    actions: return {before.mean.mean:.1f} before, {after.mean.mean:.1f} after: "
        f"{lost:+.1f} ± {error:.1f}",
        f"policy: {out}",
    ]
    assert f"sampled actions: return {before.sampled.mean:.1f} before" in said[4]


def test_whoever_knows_experts_by_their_ids_is_told_their_new_numbers(file: Path) -> None:
    text = swapped(moie.show(file, format="toml") + "\n", 'label = ""', 'label = "last"', 2)
    first = block(text, 0)
    gone = edit(file, text.replace(first, ""))
    assert str(gone).splitlines()[1:4] == [
        "  expert 0 deleted",
        "  expert 1: label from '' to 'last'",
        "  numbers of experts that were kept are the new ones: 0 was 1, 1 was 2",
    ]
    many = replace(gone, numbers=tuple(range(1, 100)))
    assert str(many).splitlines()[3].endswith("7 was 8, 8 was 9, and 90 more")
    new = first.replace("id = 0\n", "")
    assert edit(file, text + new).numbers == (0, 1, 2, None)
    assert "numbers" not in str(edit(file, text + new))
    assert "numbers" not in str(edit(file, text.replace(block(text, 2), "")))


def test_the_price_is_that_of_the_difference() -> None:
    """By hand: differences 1, 3 and 2 have the mean 2, the deviation 1 and the error 1/sqrt(3)."""
    assert paired_difference([5, 10, 100], [6, 13, 102]) == (2.0, pytest.approx(3**-0.5))
    policy = tiny.policy(WALK)
    other = replace(policy, weights=policy.weights * 2)
    measured = price.measure(policy, other, 3, seed=1, workers=1)
    alone = moie.evaluate(other, episodes=3, seed=1, workers=1)
    assert measured.mean.after == alone.mean
    assert measured.sampled.after.seeds == measured.sampled.before.seeds
    said = str(price.measure(policy, other, 1, seed=1, workers=1))
    assert "±" not in said
    assert ": 1 episode of each kind on" in said


def test_labels_do_not_cost_anything_and_are_not_measured_twice() -> None:
    policy = tiny.policy(WALK)
    assert price.acts_alike(policy, replace(policy, labels=("a", "", "")))
    assert price.acts_alike(policy, replace(policy, metric=np.ones(3)))
    assert not price.acts_alike(policy, replace(policy, metric=np.array([1.0, 2.0, 1.0])))
    assert not price.acts_alike(policy, replace(policy, temperature=0.7))
    assert not price.acts_alike(policy, tiny.policy(WALK, experts=2))
    other = replace(policy, actions=changed(policy.actions, (0, 0), 0.1))
    assert not price.acts_alike(policy, other)


def test_show_says_what_was_made_by_hand(file: Path) -> None:
    text = moie.show(file, format="toml")
    new_block = "[[expert]]" + text.split("[[expert]]")[2]
    text = swapped(text, '"cos of angle" = ', '"cos of angle" = 0.5 # ')
    text = swapped(text, "weight = ", "weight = 7 # ", 1)
    text += "\n" + new_block.replace("id = 1\n", "").replace('label = ""', 'label = "mine"')
    new = edit(file, text)
    said = moie.show(new.path)
    led = "led 33% of the last batch, the default not counted"
    assert f"# expert 0: {led}\n" in said
    assert "      # prototype set by hand\n" in said
    assert "      # not visited yet, weight set by hand\n" in said
    assert '# expert 3 "mine": ' in said
    assert "      # made by hand\n" in said
    assert "      # from iteration 0, episode 0, step 0\n" in said
    assert "\n# Changed by hand; " in said
    assert "\n#   expert 0: prototype 'cos of angle' from 0.1257302210933933 to 0.5\n" in said
    assert said.endswith('\n#   expert 3 "mine" added')
    assert "Changed by hand" not in moie.show(file)
    toml = moie.show(new.path, format="toml")
    assert "[[expert]]  # made by hand" in toml
    assert f"[[expert]]  # {led}, membership 40.0%, prototype set by hand" in toml
    again = edit(new.path, swapped(toml, "id = 0", "id = 0"))
    assert again.path.read_bytes() == new.path.read_bytes()
    assert "expert 0  " in str(moie.load(new.path).explain([1.0, 0.0, 0.0]))


# --- bad input -----------------------------------------------------------------------------------


def refused(words: list[str], folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """What is said; nothing is written."""
    before = tiny.contents(folder)
    capsys.readouterr()
    assert main(["edit", *words]) == 2
    assert tiny.contents(folder) == before
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err.removesuffix("\n")


def test_bad_input_is_one_line_and_nothing_is_written(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, toml = file.parent, str(file.parent / "mine.toml")
    text = Path(toml).read_text()
    (folder / "damaged.safetensors").write_bytes(file.read_bytes()[:-100])
    (folder / "range.toml").write_text(swapped(text, '"torque" = ', '"torque" = 3 # '))
    (folder / "latin.toml").write_bytes(b"# a comment\n# caf\xe9\n" + text.encode())
    (folder / "empty.toml").write_text("")
    (folder / "huge.toml").write_bytes(b"#" * (2**20 + 1))
    network = str(DATA / "network-v1.safetensors")
    some = str(file)
    cases = {
        (some, str(folder / "nowhere.toml")): "nowhere.toml: No such file or directory",
        (some, str(folder)): "cannot read",
        (some, str(folder / "latin.toml")): "latin.toml, line 2: it is not text in UTF-8",
        (some, str(folder / "huge.toml")): "it has 1048577 bytes, expected at most 1048576",
        (some, str(folder / "range.toml")): "line 19: action 'torque' of expert 0 is 3.0, expected",
        (some, some): "line 1: it is not text in UTF-8",
        (str(folder / "nowhere"), toml): "there is no run or policy file at",
        (str(folder / "damaged.safetensors"), toml): "is not a moie policy file",
        (network, toml): "this policy of ppo has no experts: there is nothing to edit",
        (some, toml, "--out", "/proc/new.safetensors"): "cannot write /proc/new.safetensors",
        (some, toml, "--out", str(folder / "range.toml")): "is not a policy that was edited",
        (some, toml, "--out", str(folder)): "is not a policy that was edited; choose another --out",
        (some, toml, "--episodes", "-1"): "episodes is -1, expected zero or more",
        (some, toml, "--workers", "0"): "workers is 0, expected at least 1",
    }
    for words, expected in cases.items():
        said = refused(list(words), folder, capsys)
        assert expected in said, words
        assert "\n" not in said


def test_a_policy_that_was_not_edited_is_never_replaced(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = swapped(moie.show(file, format="toml"), 'label = ""', 'label = "a"')
    (file.parent / "mine.toml").write_text(text)
    words = [str(file), str(file.parent / "mine.toml"), "--episodes", "0", "--out"]
    said = refused([*words, str(file)], file.parent, capsys)
    assert "policy.safetensors exists and is not a policy that was edited; choose" in said
    out = str(file.parent / "new.safetensors")
    assert main(["edit", *words, out]) == 0
    (file.parent / "mine.toml").write_text(text.replace('"a"', '"b"'))
    assert main(["edit", *words, out]) == 0
    assert moie.load(out).labels[0] == "b"
    assert tiny.leftovers(file.parent) == []


def test_a_pruned_policy_that_was_edited_is_not_pruned_over(tmp_path: Path) -> None:
    pruned = {"pruned": {"from": 5, "kept": [0, 1, 4], "loss": 0.1}}
    file = tiny.policy("Pendulum-v1", trained=pruned).save(tmp_path / "small.safetensors")
    new = edit(file, swapped(moie.show(file, format="toml"), 'label = ""', 'label = "a"'))
    assert "not visited yet; expert 0 before pruning" in moie.show(new.path)
    with pytest.raises(moie.InputError, match="exists and is not a pruned policy"):
        moie.prune(file, out=new.path, episodes=2, workers=1, quiet=True)


def test_a_task_of_somebody_elses_needs_consent_before_anything_is_written(
    tmp_path: Path,
) -> None:
    policy = replace(tiny.policy(), task="no_such_module:Env-v0")
    file = policy.save(tmp_path / "policy.safetensors")
    text = moie.show(file, format="toml")
    with pytest.raises(moie.InputError, match="names the task 'no_such_module:Env-v0'"):
        edit(file, text, episodes=1, out=tmp_path / "some" / "where" / "new.safetensors")
    assert sorted(os.listdir(tmp_path)) == ["mine.toml", "policy.safetensors"]
    assert edit(file, text).path.read_bytes() == file.read_bytes()


def test_only_a_mixture_can_be_shown_as_toml() -> None:
    for name in ("network-v1", "linear-v1"):
        with pytest.raises(moie.InputError, match="has no experts: there is nothing to edit"):
            moie.show(DATA / f"{name}.safetensors", format="toml")
    with pytest.raises(moie.InputError, match="format is 'xml', expected text or toml"):
        moie.show(DATA / "mixture-v1.safetensors", format="xml")  # type: ignore[arg-type]


def test_an_edited_file_that_was_damaged_is_refused(file: Path) -> None:
    new = edit(file, swapped(moie.show(file, format="toml"), 'label = ""', 'label = "abc"'))
    content = new.path.read_bytes()
    assert content.count(b"abc") == 2  # the label, and the record of it
    with pytest.raises(moie.InputError, match="its content does not match its digest"):
        policy_file.from_bytes(content.replace(b"abc", b"abd"), new.path)


# --- what may not be meant -----------------------------------------------------------------------


@pytest.fixture
def visiting(tmp_path: Path) -> Path:
    """A policy that knows where it has been: cosines from 0.5 to 1."""
    rng = np.random.default_rng(0)
    states = np.stack([rng.uniform(0.5, 1, 200), rng.uniform(-1, 1, 200), rng.normal(size=200)], 1)
    policy = tiny.policy("Pendulum-v1", visited=tiny.visited(states), weights=np.full(3, 5.0))
    return policy.save(tmp_path / "policy.safetensors")


def doubts(file: Path, old: str, new: str) -> tuple[str, ...]:
    return edit(file, swapped(moie.show(file, format="toml"), old, new)).doubts


def test_a_prototype_outside_of_what_was_visited_is_named(visiting: Path) -> None:
    (said,) = doubts(visiting, '"cos of angle" = ', '"cos of angle" = -0.9 # ')
    assert "cos of angle -0.9 was never visited; there it goes from 0.50" in said
    assert doubts(visiting, '"cos of angle" = ', '"cos of angle" = 0.75 # ') == ()


def test_a_weight_that_cannot_matter_or_dominates_is_named(visiting: Path) -> None:
    (said,) = doubts(visiting, "weight = ", "weight = 0.25 # ")
    assert "with weight 0.25 it can never lead, and has at most 20% of a command" in said
    (said,) = doubts(visiting, "weight = ", "weight = 1e9 # ")
    assert said.endswith("leads in 100% of the visited states: hardly anything else acts")
    text = swapped(moie.show(visiting, format="toml"), "weight = ", "weight = 0.25 # ")
    assert "\n  warning: expert " in str(edit(visiting, text))


def test_a_copy_that_was_written_without_a_change_may_be_written_again(visiting: Path) -> None:
    text = moie.show(visiting, format="toml")
    copy = edit(visiting, text).path
    assert copy.read_bytes() == visiting.read_bytes()
    changed = edit(visiting, swapped(text, "weight = ", "weight = 4 # "))
    assert changed.path == copy
    assert copy.read_bytes() != visiting.read_bytes()
