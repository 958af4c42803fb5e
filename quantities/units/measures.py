"""The table of measures: what each is called, what it is worth in the base unit, which prefixes it has.

Data only; `quantities.units.catalogue` makes names and codes of it. Factors are exact by definition (NIST SP 811, the
international yard and pound agreement of 1959, US customary volumes); a measure of which several sizes are in use has
none, so nothing is ever converted by a guess.
"""

from typing import NamedTuple


class Base(NamedTuple):
    """One row: *code* is kept, *scale* is worth in the base unit ("" when it has no single one), names are singular.

    *symbols* count in their own case. *prefixes* are those whose names are read ("kilometre"), *short* those whose
    symbols are read too ("km"); what has *plurals* of its own gets no "s". Where *code* is
    a word, prefixes stand before *stem*. A *counted* measure is also a thing that people count (cups, barrels, turns).
    """

    code: str
    dimension: str
    scale: str
    names: str = ""
    symbols: str = ""
    prefixes: str = ""
    short: str = ""
    plurals: str = ""
    stem: str = ""
    shift: str = "0"
    per: str = "1"
    counted: bool = False


#: Symbol, names and power of ten of each prefix.
PREFIXES = {
    "E": ("exa", 18), "P": ("peta", 15), "T": ("tera", 12), "G": ("giga", 9), "M": ("mega", 6), "k": ("kilo", 3),
    "h": ("hecto", 2), "da": ("deca deka", 1), "d": ("deci", -1), "c": ("centi", -2), "m": ("milli", -3),
    "µ": ("micro", -6), "n": ("nano", -9), "p": ("pico", -12), "f": ("femto", -15), "a": ("atto", -18),
}  # fmt: skip
#: Prefixes of two to the power of ten times their place.
BINARY = {
    "Ki": "kibi",
    "Mi": "mebi",
    "Gi": "gibi",
    "Ti": "tebi",
    "Pi": "pebi",
    "Ei": "exbi",
}

_ALL = "E P T G M k h da d c m µ n p f a"
_LARGE = "E P T G M k"

_LENGTH = (
    Base("m", "length", "1", "meter metre", "m", _ALL, "k d c m µ n"),
    Base("inch", "length", "0.0254", "inch", "", plurals="inches ins"),
    Base("ft", "length", "0.3048", "foot", "ft ft.", plurals="feet"),
    Base("yd", "length", "0.9144", "yard yd"),
    Base("mile", "length", "1609.344", "mile", "mi"),
    Base("nmi", "length", "1852", "nautical_mile", "nmi NM"),
    Base("micron", "length", "1E-6", "micron"),
    Base("angstrom", "length", "1E-10", "angstrom ångström", "Å"),
    Base("ly", "length", "9460730472580800", "light_year light-year lightyear", "ly"),
    Base("au", "length", "149597870700", "astronomical_unit"),
    Base("pixel", "pixels", "1", "pixel", "px", "M G", counted=True),
)
_AREA = (
    Base("acre", "area", "4046.8564224", "acre"),
    Base("ha", "area", "10000", "hectare", "ha"),
)
_VOLUME = (
    Base("l", "volume", "0.001", "liter litre", "l L", _ALL, "k h d c m µ"),
    Base("cc", "volume", "0.000001", "", "cc ccm"),
    Base("gal", "volume", "0.003785411784", "gallon us_gallon gal"),
    Base("imperial gallon", "volume", "0.00454609", "imperial_gallon uk_gallon"),
    Base("qt", "volume", "0.000946352946", "quart qt"),
    Base("pint", "volume", "0.000473176473", "pint", counted=True),
    Base("cup", "volume", "0.0002365882365", "cup", counted=True),
    Base(
        "fl oz",
        "volume",
        "0.0000295735295625",
        "fluid_ounce us_fluid_ounce fluid_oz",
        "fl_oz fl._oz fl._oz. floz",
    ),
    Base("tbsp", "volume", "0.00001478676478125", "tablespoon tbsp tbs tablespoonful"),
    Base("tsp", "volume", "0.00000492892159375", "teaspoon tsp teaspoonful"),
    Base("barrel", "volume", "0.158987294928", "barrel bbl", counted=True),
)
_WEIGHT = (
    Base("g", "weight", "1", "gram gramme", "g", _ALL, "k h m µ n"),
    Base("kg", "weight", "1000", "kilo"),
    Base("g", "weight", "1", "", "gm"),
    Base("µg", "weight", "1E-6", "", "mcg"),
    Base("tonne", "weight", "1000000", "tonne metric_ton metric_tonne", "t", "G M k"),
    Base("ton", "weight", "", "ton", "", "M k"),
    Base("short ton", "weight", "907184.74", "short_ton us_ton"),
    Base("long ton", "weight", "1016046.9088", "long_ton imperial_ton british_ton"),
    Base("lb", "weight", "453.59237", "lb pound_weight pound_avoirdupois", "lb."),
    Base("oz", "weight", "28.349523125", "ounce", "oz oz."),
    Base("troy ounce", "weight", "31.1034768", "troy_ounce", "ozt troy_oz"),
    Base("stone", "weight", "6350.29318", "stone", counted=True),
    Base("grain", "weight", "0.06479891", "grain", counted=True),
    Base("carat", "weight", "0.2", "carat karat"),
)
#: A month has no length in seconds, so months and years are a dimension of their own.
_TIME = (
    Base("second", "time", "1", "second sec"),
    Base("millisecond", "time", "0.001", "millisecond millisec msec", "ms"),
    Base("microsecond", "time", "0.000001", "microsecond usec", "µs \u03bcs"),
    Base("nanosecond", "time", "1E-9", "nanosecond", "ns"),
    Base("picosecond", "time", "1E-12", "picosecond"),
    Base("minute", "time", "60", "minute min"),
    Base("hour", "time", "3600", "hour hr", "h"),
    Base("day", "time", "86400", "day"),
    Base("week", "time", "604800", "week wk"),
    Base("fortnight", "time", "1209600", "fortnight"),
    Base("month", "calendar", "1", "month mth mo"),
    Base("year", "calendar", "12", "year yr"),
    Base("decade", "calendar", "120", "decade"),
    Base("century", "calendar", "1200", "century", plurals="centuries"),
)
_INFORMATION = (
    Base("bit", "information", "1", "bit", "", _LARGE, _LARGE, counted=True),
    Base("Kb", "information", "1000", "", "Kb"),
    Base("byte", "information", "8", "byte"),
    Base("KB", "information", "8000", "kilobyte kbyte", "KB kB kb"),
    Base("MB", "information", "8000000", "megabyte mbyte meg", "MB mb"),
    Base("GB", "information", "8000000000", "gigabyte gbyte gig", "GB gb"),
    Base("TB", "information", "8000000000000", "terabyte tbyte", "TB tb"),
    Base("PB", "information", "8000000000000000", "petabyte", "PB"),
    Base("EB", "information", "8E+18", "exabyte", "EB"),
    Base("ZB", "information", "8E+21", "zettabyte", "ZB"),
    Base("YB", "information", "8E+24", "yottabyte", "YB"),
    Base("Mbit", "information", "1000000", "", "Mb"),
    Base("Gbit", "information", "1000000000", "", "Gb"),
    Base("Tbit", "information", "1000000000000", "", "Tb"),
)
_TEMPERATURE = (
    Base(
        "°C", "temperature", "1",
        "celsius centigrade degree_celsius degree_centigrade degree_c deg_c degree_of_celsius",
        "°C ℃ ºC deg_C degC", shift="273.15",
        plurals="degrees_celsius degrees_centigrade degrees_c degs_c",
    ),
    Base(
        "°F", "temperature", "5", "fahrenheit degree_fahrenheit degree_f deg_f", "°F ℉ ºF deg_F degF",
        shift="459.67", per="9", plurals="degrees_fahrenheit degrees_f degs_f",
    ),
    Base("K", "temperature", "1", "kelvin degree_kelvin", "°K ºK", "m µ n", plurals="kelvins degrees_kelvin"),
)  # fmt: skip
_ANGLE = (
    Base(
        "degree",
        "angle",
        "3600",
        "degree deg degree_of_arc",
        "° º",
        plurals="degrees degs degrees_of_arc",
    ),
    Base("arcminute", "angle", "60", "minute_of_arc", plurals="minutes_of_arc"),
    Base("arcminute", "angle", "60", "arcminute arc_minute"),
    Base("arcsecond", "angle", "1", "second_of_arc", plurals="seconds_of_arc"),
    Base("arcsecond", "angle", "1", "arcsecond arc_second"),
    Base("radian", "angle", "", "radian", "rad rads", "m"),
    Base("turn", "angle", "1296000", "turn revolution", counted=True),
)
_PHYSICS = (
    Base(
        "Hz", "frequency", "1", "hertz", "Hz", "T G M k m", "T G M k m", plurals="hertz"
    ),
    Base(
        "rpm",
        "rotation",
        "1",
        "revolution_per_minute",
        "rpm RPM",
        plurals="revolutions_per_minute",
    ),
    Base("bpm", "pulse", "1", "beat_per_minute", "bpm BPM", plurals="beats_per_minute"),
    Base("Pa", "pressure", "1", "pascal", "Pa", "G M k h m", "G M k h"),
    Base("bar", "pressure", "100000", "", "bar", "", "k m"),
    Base("mbar", "pressure", "100", "millibar"),
    Base("atm", "pressure", "101325", "atmosphere", "atm"),
    Base(
        "psi",
        "pressure",
        "",
        "pound_per_square_inch",
        "psi PSI",
        plurals="pounds_per_square_inch",
    ),
    Base("mmHg", "pressure", "", "", "mmHg mm_Hg"),
    Base("J", "energy", "1", "joule", "", "P T G M k m µ", "T G M k m"),
    Base(
        "Wh",
        "energy",
        "3600",
        "watt_hour watthour watt-hour",
        "Wh wh",
        "P T G M k m",
        "T G M k",
    ),
    Base("cal", "energy", "4.184", "calorie", "cal", "k", "k"),
    # with a capital they are those of food
    Base(
        "kcal", "energy", "4184", "large_calorie food_calorie", "Cal Calorie Calories"
    ),
    Base("eV", "energy", "", "electronvolt electron_volt", "eV", "T G M k", "T G M k"),
    Base("BTU", "energy", "", "btu british_thermal_unit", "BTU Btu"),
    Base("W", "power", "1", "watt", "W", "P T G M k m µ n", "T G M k m µ"),
    Base("hp", "power", "", "horsepower", "hp HP bhp", plurals="horsepower"),
    Base("N", "force", "1", "newton", "", "M k m", "M k"),
    Base("Nm", "torque", "1", "newton_meter newton_metre", "Nm N·m"),
    Base("V", "voltage", "1", "volt", "V", "M k m µ", "M k m µ"),
    Base("A", "current", "1", "ampere amp", "", "k m µ n", "k m µ"),
    Base("Ah", "charge", "1", "ampere_hour amp_hour amp-hour", "Ah", "m", "m"),
    Base("VA", "apparent power", "1", "volt_ampere", "VA", "k M", "k M"),
    Base("ohm", "resistance", "1", "ohm", "Ω Ω", "G M k m", ""),
    Base("kohm", "resistance", "1000", "", "kΩ kΩ"),
    # a bare F is that of a temperature
    Base("farad", "capacitance", "1", "farad", "", "m µ n p", "m µ n p", stem="F"),
    Base("H", "inductance", "1", "henry", "", "m µ n", "m µ", plurals="henries henrys"),
    Base("T", "flux density", "1", "tesla", "", "m µ n"),
    Base("mol", "substance", "1", "mole", "mol", "k m µ n", "k m µ n"),
    Base("lm", "light", "1", "lumen", "lm"),
    Base("lx", "illuminance", "1", "lux", "lx", plurals="lux"),
    Base("cd", "luminous intensity", "1", "candela"),
    Base("dB", "level", "1", "decibel", "dB db"),
    Base("Bq", "radioactivity", "1", "becquerel", "Bq", "T G M k", "T G M k"),
    Base("Sv", "radiation dose", "1", "sievert", "", "m µ", "m µ"),
    Base(
        "ppm", "share", "1000", "part_per_million", "ppm", plurals="parts_per_million"
    ),
    Base("ppb", "share", "1", "part_per_billion", "ppb", plurals="parts_per_billion"),
    Base("knot", "speed", "1852", "knot", "kn kt kts", per="3600"),
    Base("IU", "biological activity", "1", "international_unit", "IU"),
)

BASES = (
    *_LENGTH, *_AREA, *_VOLUME, *_WEIGHT, *_TIME, *_INFORMATION, *_TEMPERATURE, *_ANGLE, *_PHYSICS,
)  # fmt: skip

#: Rates that people write as one word, and what each says in full.
RATES = {
    "mph": "mile/h", "m.p.h.": "mile/h", "kph": "km/h", "kmph": "km/h", "kmh": "km/h", "km/hr": "km/h", "kmhr": "km/h",
    "kps": "km/s", "mps": "m/s", "fpm": "ft/min", "mpg": "mile/gal", "kbps": "kbit/s", "Kbps": "kbit/s",
    "mbps": "Mbit/s", "Mbps": "Mbit/s", "gbps": "Gbit/s", "Gbps": "Gbit/s", "Tbps": "Tbit/s",
    "KBps": "KB/s", "kBps": "KB/s", "MBps": "MB/s", "GBps": "GB/s",
    "cfm": "ft3/min", "gpm": "gal/min", "sqm": "m2", "sqft": "ft2", "sqkm": "km2", "sqmi": "mile2", "cbm": "m3",
    "cuft": "ft3", "kWp": "kW", "yo": "year", "y/o": "year", "y.o": "year",
}  # fmt: skip
#: How the second half of a rate is kept: "km/h" rather than "km/hour".
SHORT_TIMES = {
    "second": "s",
    "minute": "min",
    "hour": "h",
    "millisecond": "ms",
    "microsecond": "µs",
}
