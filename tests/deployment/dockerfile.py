"""The Dockerfile, as its stages and their instructions."""

import json
import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


@dataclass(frozen=True)
class Instruction:
    """One instruction, on one line."""

    name: str
    text: str

    @property
    def words(self) -> list[str]:
        """Of a JSON list, or as a shell would divide it."""
        listed: list[str] = (
            json.loads(self.text) if self.text.startswith("[") else shlex.split(self.text)
        )
        return listed

    @property
    def pairs(self) -> dict[str, str]:
        """Of ENV, LABEL and ARG."""
        return dict(word.split("=", 1) for word in self.words if "=" in word)


@dataclass(frozen=True)
class Stage:
    """From one FROM to the next."""

    instructions: tuple[Instruction, ...]

    def all(self, name: str) -> list[Instruction]:
        return [one for one in self.instructions if one.name == name]

    def one(self, name: str) -> Instruction:
        (found,) = self.all(name)
        return found

    @property
    def environment(self) -> dict[str, str]:
        return {name: value for one in self.all("ENV") for name, value in one.pairs.items()}

    @property
    def health_command(self) -> list[str]:
        _, command = self.one("HEALTHCHECK").text.split("CMD ")
        return Instruction("CMD", command).words


def stages(file: Path = ROOT / "Dockerfile") -> list[Stage]:
    """What stands before the first FROM comes as a stage of its own."""
    lines = [line for line in file.read_text().splitlines() if not line.lstrip().startswith("#")]
    found: list[list[Instruction]] = [[]]
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        if line.strip():
            name, text = line.split(None, 1)
            if name == "FROM":
                found.append([])
            found[-1].append(Instruction(name, text.strip()))
    return [Stage(tuple(one)) for one in found]
