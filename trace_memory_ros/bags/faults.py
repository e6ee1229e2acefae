"""What is wrong with a bag: what, where, and how to repair it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class BagFault(ValueError):
    """One thing wrong with a bag. bag: its path. where: file and byte, topic, or tick. remedy: what to do about it.

    also: what else had been found wrong when this one was raised. topic: which alone it is about, by its absolute
    name; empty where others may suffer.
    """

    also: tuple[BagFault, ...] = ()
    topic: str = ""

    def __init__(self, bag: object, what: str, where: str, remedy: str) -> None:
        super().__init__(str(bag), what, where, remedy)
        self.bag = str(bag)
        self.what = what
        self.where = where
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.bag}: {self.where}: {self.what}; {self.remedy}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BagFault) and self.args == other.args

    def __hash__(self) -> int:
        return hash(self.args)

    def to_dict(self) -> dict[str, str]:
        """The four fields by name."""
        return {"bag": self.bag, "what": self.what, "where": self.where, "remedy": self.remedy}


class Grade(StrEnum):
    """OK: nothing is missing. DEGRADED: usable, with losses that are named. UNUSABLE: no tick can be used."""

    OK = "ok"
    DEGRADED = "degraded"
    UNUSABLE = "unusable"


@dataclass(frozen=True)
class BagVerdict:
    """A bag's grade and, in order of discovery, what is wrong with it."""

    bag: str
    grade: Grade
    faults: tuple[BagFault, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether nothing at all is wrong."""
        return self.grade is Grade.OK

    def __str__(self) -> str:
        lines = [f"{self.bag}: {self.grade.value}"]
        lines += [f"  {fault.where}: {fault.what}; {fault.remedy}" for fault in self.faults]
        return "\n".join(lines)


def verdict_of(bag: object, faults: tuple[BagFault, ...] | list[BagFault], usable: bool = True) -> BagVerdict:
    """The verdict of a bag with these faults; `usable` says whether any tick can be used."""
    grade = (Grade.DEGRADED if faults else Grade.OK) if usable else Grade.UNUSABLE
    return BagVerdict(str(bag), grade, tuple(faults))
