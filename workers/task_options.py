"""The options of `@agent.task`: their types, for authors and type checkers, and how each is checked."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any, Literal, TypedDict, cast, get_args

from tasklore.contracts.admission.schedules import Timing
from tasklore.contracts.admission.waits import demand_person
from tasklore.contracts.errors import ConfigurationError, InvalidInput
from tasklore.contracts.faults import nearest
from tasklore.contracts.parameters.model import Parameters
from tasklore.contracts.zones import read_zone
from tasklore.workers.context.access import REMEMBER_FOR

Use = Literal["llm", "clock", "edits"]
Missed = Literal["skip", "once", "all"]

#: The wire allows no more; more is a loop, not a retry.
_MOST_ATTEMPTS = 1000
#: Places of one bound: more are none.
_MOST_AT_ONCE = 1000
#: What a run may be bound by that is no parameter; a parameter of that name goes first.
_CALLER = ("tenant", "user")


class TaskOptions(TypedDict, total=False):
    """What `@agent.task(...)` takes; each may be left out.

    Attributes:
        name: the task's name, by default the function's.
        version: raise it when results mean something new; 1 by default.
        remember: who may be served a remembered result: everybody ("shared"), the user who asked ("user"), or nobody
            (False, the default).
        remember_for: how long, 30 days by default, None for ever; a remembered task that uses clock, model or
            `context.once` must say it, since its results go stale.
        max_attempts: runs, the first included; the worker's setting by default.
        deadline: how long it may take, its time in the queue included, when the request does not say.
        retry_base: the pause before its second run, which doubles with every further one; the worker's by default.
        retry_cap: the longest such pause.
        retry_on: errors of programming (TypeError and the like) that are worth another run all the same.
        idempotent: whether running it twice does no harm, so that it may run while the ledger is away; the default.
        uses: "llm", "clock", "edits": what it touches through its context.
        keywords: words in a sentence that point at this task, beside those of the agent.
        examples: sentences that ask for it.
        in_words: whether a person may ask for it in words (the default), or only pipelines, analyses and programs.
        confirm: whether it has effects that a person who asks in words is shown, and says yes to, before it starts;
            "role:finance" or "user:ana" for those whose yes it needs instead, for which it waits up to seven days.
        every: how often it begins by itself, in whole seconds; all its parameters then need defaults.
        cron: when it does instead, as "0 9 * * mon-fri".
        time_zone: by whose clocks (IANA); "UTC" by default.
        missed: which times are made up for at which no supervisor ran: none ("skip"), the last ("once", the default),
            or "all".
        at_most: how many runs of it may go on at once, over all workers; the others wait without a slot.
        per: for each value of which that holds: parameters, or "tenant" or "user" of who asks.
    """

    name: str | None
    version: int
    remember: Literal["shared", "user", False]
    remember_for: timedelta | None
    max_attempts: int | None
    deadline: timedelta | None
    retry_base: timedelta | None
    retry_cap: timedelta | None
    retry_on: Iterable[type[Exception]]
    idempotent: bool
    uses: Iterable[Use]
    keywords: Iterable[str]
    examples: Iterable[str]
    in_words: bool
    confirm: bool | str
    every: timedelta | None
    cron: str | None
    time_zone: str
    missed: Missed
    at_most: int | None
    per: str | Iterable[str]


class OptionReader:
    """Reads the options of one task, each by its check; every `read_...` raises ConfigurationError with the cure.

    Args:
        options: as `@agent.task` was given them.
        label: "TripAgent.share_trip", for messages.
        parameters: the class of the task's parameters.

    Raises:
        ConfigurationError: there is no such option.
    """

    def __init__(
        self, options: TaskOptions, label: str, parameters: type[Parameters]
    ) -> None:
        known = TaskOptions.__annotations__
        for name in options:
            if name not in known:
                cure = f"{nearest(name, known) or ';'} known are {', '.join(known)}"
                raise ConfigurationError(
                    f"{label}: @agent.task has no option {name!r}{cure}"
                )
        self._options = options
        self._label = label
        self._parameters = parameters

    def read_version(self) -> int:
        """Return the version of the task."""
        version = self._options.get("version", 1)
        demand_version(version, self._label)
        return version

    def read_remember(self) -> Literal["shared", "user", "never"]:
        """Return the scope in which results are remembered."""
        remember = self._options.get("remember", False)
        if remember is False:
            return "never"
        if remember not in ("shared", "user"):
            raise self._refusal(
                f'remember must be "shared", "user" or False, not {remember!r}'
            )
        return remember

    def read_remember_for(self) -> timedelta | None:
        """Return how long results are remembered, None for ever; REMEMBER_FOR itself where the author says nothing."""
        if "remember_for" not in self._options:
            return REMEMBER_FOR
        return self._check_span("remember_for", self._options["remember_for"])

    def read_max_attempts(self) -> int | None:
        """Return the runs that the task may have, None for the worker's setting."""
        attempts = self._options.get("max_attempts")
        if attempts is None:
            return None
        return self._check_count(
            "max_attempts counts runs, the first included", attempts, _MOST_ATTEMPTS
        )

    def read_deadline(self) -> timedelta | None:
        """Return how long the task may take, None for the worker's setting."""
        return self._check_span("deadline", self._options.get("deadline"))

    def read_retry_base(self) -> timedelta | None:
        """Return the first pause between two runs, None for the worker's setting."""
        return self._check_span("retry_base", self._options.get("retry_base"))

    def read_retry_cap(self) -> timedelta | None:
        """Return the longest pause between two runs, None for the worker's setting; it may not be below the first."""
        cap = self._check_span("retry_cap", self._options.get("retry_cap"))
        base = self.read_retry_base()
        if cap is not None and base is not None and base > cap:
            raise self._refusal(f"retry_base {base} exceeds retry_cap {cap}")
        return cap

    def read_retry_on(self) -> tuple[type[Exception], ...]:
        """Return the errors that are worth another run although they look like slips of the task's code."""
        kinds = self._options.get("retry_on", ())
        several = tuple(kinds) if isinstance(kinds, Iterable) else (kinds,)
        is_single = not isinstance(kinds, Iterable)
        if is_single or not all(
            isinstance(kind, type) and issubclass(kind, Exception) for kind in several
        ):
            raise self._refusal(
                "retry_on takes classes of exceptions, as retry_on=(TypeError,), "
                f"not {kinds if is_single else several!r}"
            )
        return several

    def read_idempotent(self) -> bool:
        """Return whether running the task twice does no harm."""
        return self._check_flag("idempotent", self._options.get("idempotent", True))

    def read_in_words(self) -> bool:
        """Return whether a person may ask for the task in words."""
        return self._check_flag("in_words", self._options.get("in_words", True))

    def read_uses(self) -> frozenset[str]:
        """Return what the task touches through its context."""
        uses = words_of(self._options.get("uses", ()), f"{self._label}: uses")
        known = get_args(Use)
        unknown = sorted(set(uses) - set(known))
        if unknown:
            msg = f"{self._label}: uses knows {', '.join(known)}, not {', '.join(unknown)}"
            raise ConfigurationError(msg)
        return frozenset(uses)

    def read_keywords(self) -> tuple[str, ...]:
        """Return the words in a sentence that point at the task."""
        return words_of(self._options.get("keywords", ()), f"{self._label}: keywords")

    def read_examples(self) -> tuple[str, ...]:
        """Return sentences that ask for the task."""
        return words_of(self._options.get("examples", ()), f"{self._label}: examples")

    def read_confirm(self) -> bool:
        """Return whether a person has to say yes before the task starts."""
        return bool(self._options.get("confirm", False))

    def read_approver(self) -> str | None:
        """Return whose yes the task needs, None for that of the person who asks."""
        confirm = self._options.get("confirm", False)
        if isinstance(confirm, bool):
            return None
        try:
            return demand_person(confirm)
        except (InvalidInput, AttributeError, TypeError) as error:
            raise self._refusal(
                f"confirm={confirm!r}; write True, 'user:ana' or 'role:finance'"
            ) from error

    def read_schedule(self) -> Timing | None:
        """Return when the task begins by itself, None for never; supervisors read the cron expression."""
        every = self._options.get("every")
        cron = self._options.get("cron")
        zone = self._options.get("time_zone", "UTC")
        missed = self._options.get("missed", "once")
        if missed not in get_args(Missed):
            raise self._refusal(
                f'missed must be "skip", "once" or "all", not {missed!r}'
            )
        try:
            read_zone(zone)
        except (InvalidInput, AttributeError, TypeError) as error:
            msg = str(error)
            if not isinstance(error, InvalidInput):
                msg = f"time_zone must be the name of one, as 'Europe/Vienna', not {zone!r}"
            raise self._refusal(msg) from error
        if every is not None and cron is not None:
            raise self._refusal(
                "every and cron are two ways to say it; leave one of them out"
            )
        if cron is not None:
            if not isinstance(cron, str):
                raise self._refusal(
                    f"cron must be text, as '0 9 * * mon-fri', not {cron!r}"
                )
        elif every is None:
            return None
        elif (
            not isinstance(every, timedelta)
            or every < timedelta(seconds=1)
            or every % timedelta(seconds=1)
        ):
            raise self._refusal(
                f"every must be a timedelta of whole seconds, at least one, not {every!r}"
            )
        needed = [
            name
            for name, one in self._parameters.model_fields.items()
            if one.is_required()
        ]
        if needed:
            fields = ", ".join(needed)
            raise ConfigurationError(
                f"{self._label} begins by itself, so each of its parameters needs a default: give one to {fields}"
            )
        return Timing(
            cron=cron,
            every_s=every // timedelta(seconds=1) if every else None,
            time_zone=zone,
            missed=missed,
        )

    def read_at_most(self) -> int | None:
        """Return how many runs may go on at once, None for any number."""
        most = self._options.get("at_most")
        if most is None:
            return None
        return self._check_count("at_most counts runs", most, _MOST_AT_ONCE)

    def read_per(self) -> tuple[str, ...]:
        """Return for each value of which parameters `at_most` holds."""
        per = self._options.get("per", ())
        names = (per,) if isinstance(per, str) else words_of(per, f"{self._label}: per")
        if self.read_at_most() is None and names:
            raise self._refusal(
                "per without at_most; say how many runs there may be for each value, as at_most=1"
            )
        known = [*self._parameters.model_fields, *_CALLER]
        for name in names:
            if name not in known:
                raise self._refusal(
                    f"per knows no {name!r}; it knows {', '.join(known)}"
                )
        return names

    def _check_span(self, name: str, span: object) -> timedelta | None:
        if span is None or (isinstance(span, timedelta) and span > timedelta(0)):
            return span
        raise self._refusal(
            f"{name} must be a timedelta above zero, or None; not {span!r}"
        )

    def _check_count(self, meaning: str, count: object, most: int) -> int:
        if type(count) is int and 1 <= count <= most:
            return count
        raise self._refusal(f"{meaning}: 1 to {most:,}, not {count!r}")

    def _check_flag(self, name: str, flag: object) -> bool:
        if isinstance(flag, bool):
            return flag
        raise self._refusal(f"{name} must be True or False, not {flag!r}")

    def _refusal(self, fault: str) -> ConfigurationError:
        return ConfigurationError(f"{self._label}: {fault}")


def words_of(words: object, what: str) -> tuple[str, ...]:
    """Return *words* as a tuple.

    Raises:
        ConfigurationError: it is one string instead of several, or holds something else than strings.
    """
    if isinstance(words, str):
        raise ConfigurationError(f"{what} must be several strings; write ({words!r},)")
    several: tuple[Any, ...] = tuple(words) if isinstance(words, Iterable) else (words,)
    if not all(isinstance(word, str) and word.strip() for word in several):
        raise ConfigurationError(
            f"{what} must be strings that are not empty, not {several!r}"
        )
    return cast("tuple[str, ...]", several)


def demand_version(version: int, what: str) -> None:
    """Refuse a version that is no whole number from 1.

    Raises:
        ConfigurationError: it is another.
    """
    if type(version) is not int or version < 1:
        raise ConfigurationError(
            f"{what}: version must be a whole number from 1, not {version!r}"
        )
