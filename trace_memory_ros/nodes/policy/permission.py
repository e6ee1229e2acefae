"""Whether commands may be sent at all: enabled by a person, stopped by a person, a button or a fault."""

from __future__ import annotations

REMEDY = "call ~/enable to go on"


class Permission:
    """A stop lasts until `enable`; one for a fault ends with the episode too."""

    def __init__(self, start_enabled: bool) -> None:
        self._stopped = "" if start_enabled else "start_enabled is false"
        self._fault = self._blocked = ""

    @property
    def allowed(self) -> bool:
        """Whether commands may be sent."""
        return not self.reason

    @property
    def reason(self) -> str:
        """Why commands may not be sent, and what to do; empty where they may."""
        if self._fault:
            return f"{self._fault}: no command; end the cause, then {REMEDY}, or ~/reset for a new episode"
        if self._stopped:
            return f"commands are disabled ({self._stopped}): {REMEDY}"
        return self._blocked

    @property
    def fault(self) -> str:
        """The fault that stopped commands; empty where none did."""
        return self._fault

    def enable(self) -> None:
        """A person says go."""
        self._stopped = self._fault = ""

    def stop(self, who: str) -> None:
        """A person or button says stop. who: named in the reason."""
        self._stopped = who

    def fail(self, fault: str) -> None:
        """Something is wrong that a person has to look at; the first fault is kept."""
        self._fault = self._fault or fault

    def block(self, reason: str) -> None:
        """Commands may not be sent for as long as `reason` is not empty; a person need not enable afterwards."""
        self._blocked = reason

    @property
    def blocked(self) -> str:
        """Why commands may not be sent for now; empty where nothing blocks them."""
        return self._blocked

    def new_episode(self) -> None:
        """Whoever resets has seen to the fault; a person's stop stays."""
        self._fault = ""
