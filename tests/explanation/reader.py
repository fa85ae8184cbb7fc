"""What a person does who has nothing but the text of `moie show`, 80 columns wide: computes the
command in a state. No part of moie is used."""

import math
import re
from dataclasses import dataclass, field

NUMBER = r"[+-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?"


HEAD = rf"(IF|ALSO) (?:within {NUMBER} radii|near) \(h ({NUMBER})\)"
RANGE = rf"(\S.*?) +({NUMBER}) to ({NUMBER})(?= {{3,}}|$)"


@dataclass
class Block:
    """An IF, ALSO or OTHERWISE."""

    name: str
    h: float = 0.0
    values: dict[str, float] = field(default_factory=dict)
    commands: dict[str, float] = field(default_factory=dict)
    said: str = ""


@dataclass
class Program:
    radii: dict[str, float] = field(default_factory=dict)
    ranges: dict[str, tuple[float, float]] = field(default_factory=dict)
    blocks: list[Block] = field(default_factory=list)

    def shares(self, state: dict[str, float]) -> list[float]:
        strengths = [self._strength(block, state) for block in self.blocks]
        return [one / sum(strengths) for one in strengths]

    def _strength(self, block: Block, state: dict[str, float]) -> float:
        away = [(state[f] - v) / self.radii[f] for f, v in block.values.items()]
        return math.exp(block.h - sum(x * x for x in away))

    def command(self, state: dict[str, float]) -> dict[str, float]:
        shares = self.shares(state)
        found = {}
        for joint, (low, high) in self.ranges.items():
            parts = zip(shares, self.blocks, strict=True)
            mean = sum(share * block.commands[joint] for share, block in parts)
            found[joint] = min(max(mean, low), high)
        return found

    def leader(self, state: dict[str, float]) -> str:
        """The name of the strongest part."""
        shares = self.shares(state)
        return self.blocks[shares.index(max(shares))].name


def pairs(line: str) -> dict[str, float]:
    """`name number   name number`."""
    found = re.findall(rf"(\S.*?) +({NUMBER})(?= {{3,}}|$)", line)
    assert found, line
    return {name: float(value) for name, value in found}


def read(text: str) -> Program:
    """The program; AssertionError at a line that cannot be understood."""
    program, part, is_command = Program(), "", False
    for line in text.splitlines():
        bare, _, said = line.partition("#")
        if not bare.strip():
            continue
        if line.startswith("FEATURE"):
            part = "features"
        elif line.startswith("COMMAND"):
            part = "ranges"
        elif match := re.match(HEAD, line):
            part, is_command = "block", False
            name = re.search(r"expert \d+", said)
            assert name, line
            program.blocks.append(Block(name[0], float(match[2]), said=said.strip()))
        elif line.startswith("OTHERWISE"):
            part, is_command = "block", False
            program.blocks.append(Block("OTHERWISE", said=said.strip()))
        elif part == "features":
            match = re.match(rf"   (\S.*?) {{3,}}({NUMBER})", line)
            assert match, line
            program.radii[match[1].strip()] = float(match[2])
        elif part == "ranges":
            for joint, low, high in re.findall(RANGE, line):
                program.ranges[joint] = float(low), float(high)
        elif line.startswith("   DO "):
            is_command = True
            program.blocks[-1].commands |= pairs(line.removeprefix("   DO "))
        else:
            assert line.startswith("      "), line
            into = program.blocks[-1].commands if is_command else program.blocks[-1].values
            into |= pairs(line)
    return program
