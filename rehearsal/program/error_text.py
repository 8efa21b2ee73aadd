"""Decides how a failure inside a program or a cloud reads: one line that says what happened, never a traceback or a whole value."""

from components.errors import GpufleetError


def one_line(error: BaseException) -> str:
    """The error's message as one line; the type's name goes before a message that is empty or, as for a KeyError, only a value."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if not lines or isinstance(error, LookupError):
        return ": ".join([type(error).__name__, *lines])
    # The SDK wraps a bad value in two lines per level of nesting, with the whole value in those between.
    return lines[0] if len(lines) == 1 else f"{lines[0]}: {lines[-1]}"


class RegistrationError(GpufleetError):
    """A resource was refused; `cause` is one line that says why."""

    def __init__(self, resource_type: str, name: str, cause: str) -> None:
        self.resource_type, self.name, self.cause = resource_type, name, cause
        super().__init__(f"{resource_type} {name!r}: {cause}")
