"""Zones by what people call them beside a time of day: "New York time", "Pacific time", "ET", "Europe/Berlin"."""

from datetime import datetime, timedelta, timezone, tzinfo
from functools import cache
from typing import Final

#: Zones that no city names, and cities that the table of zones does not hold, by what stands before "time".
_CALLED: Final = {
    name: zone
    for zone, names in (
        ("America/New_York", "eastern, us eastern, boston, washington, washington dc, miami, atlanta, nyc"),
        ("America/Chicago", "central, us central, houston, dallas, austin"),
        ("America/Denver", "mountain, us mountain"),
        ("America/Los_Angeles", "pacific, us pacific, la, san francisco, seattle, san diego, california, las vegas"),
        ("Europe/London", "uk, british, england, edinburgh, manchester, liverpool"),
        ("Europe/Dublin", "irish, ireland"), ("Europe/Paris", "french, france, lyon, marseille"),
        ("Europe/Berlin", "german, germany, munich, frankfurt, hamburg, cologne, central european"),
        ("Europe/Rome", "italian, italy, milan, naples, turin"), ("Europe/Madrid", "barcelona, seville, valencia"),
        ("Europe/Zurich", "swiss, switzerland, geneva, bern, basel"), ("Europe/Vienna", "austrian, austria"),
        ("Europe/Amsterdam", "dutch, rotterdam"), ("Europe/Athens", "greek, greece"), ("Europe/Kiev", "kyiv"),
        ("Asia/Kolkata", "indian, india, mumbai, delhi, new delhi, bangalore, bengaluru, chennai, hyderabad"),
        ("Asia/Shanghai", "chinese, china, beijing, shenzhen"), ("Asia/Tokyo", "japanese, japan, osaka, kyoto"),
        ("Asia/Seoul", "korean"), ("Asia/Dubai", "abu dhabi"), ("America/Toronto", "ottawa"),
    )
    for name in names.split(", ")
}  # fmt: skip
#: Hours ahead of UTC by names that no season changes.
_FIXED: Final[dict[str, float]] = {
    "eastern standard": -5, "eastern daylight": -4, "central standard": -6, "central daylight": -5,
    "mountain standard": -7, "mountain daylight": -6, "pacific standard": -8, "pacific daylight": -7,
    "greenwich mean": 0, "coordinated universal": 0, "universal": 0, "british summer": 1, "central european summer": 2,
    "indian standard": 5.5, "japan standard": 9,
}  # fmt: skip
#: In capitals right after a time of day: without "standard" or "daylight" the calendar says which.
LETTERS: Final = {
    "et": "America/New_York", "ct": "America/Chicago", "mt": "America/Denver", "pt": "America/Los_Angeles",
}  # fmt: skip
_REGIONS: Final = ("Europe", "America", "Asia", "Africa", "Australia", "Pacific", "Atlantic", "Indian")
#: Places whose names are other words, or of other places too.
_OTHER_WORDS: Final = frozenset({"easter", "wake", "midway", "west", "north", "south", "act", "victoria", "cordoba"})


def zone_called(name: str) -> tzinfo | None:
    """Return the zone of the place *name* ("new york"), or the one of that name ("Europe/Berlin"); None for others."""
    said = name.lower()
    if said in _FIXED:
        return timezone(timedelta(hours=_FIXED[said]))
    known = _CALLED.get(said) or _zones().get(said)
    return _zone(known) if known else None


@cache
def _zones() -> dict[str, str]:
    """Return the zones of cities by their small letters, with their region and without it; not before one is said."""
    from zoneinfo import available_timezones

    names = sorted(one for one in available_timezones() if one.count("/") == 1 and one.split("/")[0] in _REGIONS)
    cities = {one.split("/")[1].replace("_", " ").lower(): one for one in names}
    return {one.lower(): one for one in names} | {city: one for city, one in cities.items() if city not in _OTHER_WORDS}


def _zone(name: str) -> tzinfo | None:
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return None


def in_fixed_zone(moment: datetime) -> tuple[datetime, ...]:
    """Return *moment* with its offset: two where clocks are put back, or skip that hour; a local one as it is."""
    if moment.tzinfo is None or isinstance(moment.tzinfo, timezone):
        return (moment,)
    offsets = dict.fromkeys(moment.replace(fold=fold).utcoffset() for fold in (0, 1))
    return tuple(moment.replace(tzinfo=timezone(one), fold=0) for one in offsets if one is not None)
