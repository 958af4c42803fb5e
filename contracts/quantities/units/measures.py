"""The table of measures: what each is called, what it is worth in the base unit, which prefixes it has.

Data only; `tasklore.contracts.quantities.units.catalogue` makes names and codes of it. Factors are exact by
definition (NIST SP 811, the international yard and pound agreement of 1959, US customary volumes); a measure of which
several sizes are in use has none, so nothing is ever converted by a guess.
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
    Base(
        "m",
        dimension="length",
        scale="1",
        names="meter metre",
        symbols="m",
        prefixes=_ALL,
        short="k d c m µ n",
    ),
    Base(
        "inch",
        dimension="length",
        scale="0.0254",
        names="inch",
        symbols="",
        plurals="inches ins",
    ),
    Base(
        "ft",
        dimension="length",
        scale="0.3048",
        names="foot",
        symbols="ft ft.",
        plurals="feet",
    ),
    Base("yd", "length", "0.9144", "yard yd"),
    Base("mile", dimension="length", scale="1609.344", names="mile", symbols="mi"),
    Base(
        "nmi", dimension="length", scale="1852", names="nautical_mile", symbols="nmi NM"
    ),
    Base("micron", "length", "1E-6", "micron"),
    Base(
        "angstrom",
        dimension="length",
        scale="1E-10",
        names="angstrom ångström",
        symbols="Å",
    ),
    Base(
        "ly",
        dimension="length",
        scale="9460730472580800",
        names="light_year light-year lightyear",
        symbols="ly",
    ),
    Base("au", "length", "149597870700", "astronomical_unit"),
    Base(
        "pixel",
        dimension="pixels",
        scale="1",
        names="pixel",
        symbols="px",
        prefixes="M G",
        counted=True,
    ),
)
_AREA = (
    Base("acre", "area", "4046.8564224", "acre"),
    Base("ha", dimension="area", scale="10000", names="hectare", symbols="ha"),
)
_VOLUME = (
    Base(
        "l",
        dimension="volume",
        scale="0.001",
        names="liter litre",
        symbols="l L",
        prefixes=_ALL,
        short="k h d c m µ",
    ),
    Base("cc", dimension="volume", scale="0.000001", names="", symbols="cc ccm"),
    Base("gal", "volume", "0.003785411784", "gallon us_gallon gal"),
    Base("imperial gallon", "volume", "0.00454609", "imperial_gallon uk_gallon"),
    Base("qt", "volume", "0.000946352946", "quart qt"),
    Base("pint", "volume", "0.000473176473", "pint", counted=True),
    Base("cup", "volume", "0.0002365882365", "cup", counted=True),
    Base(
        "fl oz",
        dimension="volume",
        scale="0.0000295735295625",
        names="fluid_ounce us_fluid_ounce fluid_oz",
        symbols="fl_oz fl._oz fl._oz. floz",
    ),
    Base("tbsp", "volume", "0.00001478676478125", "tablespoon tbsp tbs tablespoonful"),
    Base("tsp", "volume", "0.00000492892159375", "teaspoon tsp teaspoonful"),
    Base("barrel", "volume", "0.158987294928", "barrel bbl", counted=True),
)
_WEIGHT = (
    Base(
        "g",
        dimension="weight",
        scale="1",
        names="gram gramme",
        symbols="g",
        prefixes=_ALL,
        short="k h m µ n",
    ),
    Base("kg", "weight", "1000", "kilo"),
    Base("g", dimension="weight", scale="1", names="", symbols="gm"),
    Base("µg", dimension="weight", scale="1E-6", names="", symbols="mcg"),
    Base(
        "tonne",
        dimension="weight",
        scale="1000000",
        names="tonne metric_ton metric_tonne",
        symbols="t",
        prefixes="G M k",
    ),
    Base("ton", dimension="weight", scale="", names="ton", symbols="", prefixes="M k"),
    Base("short ton", "weight", "907184.74", "short_ton us_ton"),
    Base("long ton", "weight", "1016046.9088", "long_ton imperial_ton british_ton"),
    Base(
        "lb",
        dimension="weight",
        scale="453.59237",
        names="lb pound_weight pound_avoirdupois",
        symbols="lb.",
    ),
    Base(
        "oz", dimension="weight", scale="28.349523125", names="ounce", symbols="oz oz."
    ),
    Base(
        "troy ounce",
        dimension="weight",
        scale="31.1034768",
        names="troy_ounce",
        symbols="ozt troy_oz",
    ),
    Base("stone", "weight", "6350.29318", "stone", counted=True),
    Base("grain", "weight", "0.06479891", "grain", counted=True),
    Base("carat", "weight", "0.2", "carat karat"),
)
#: A month has no length in seconds, so months and years are a dimension of their own.
_TIME = (
    Base("second", "time", "1", "second sec"),
    Base(
        "millisecond",
        dimension="time",
        scale="0.001",
        names="millisecond millisec msec",
        symbols="ms",
    ),
    Base(
        "microsecond",
        dimension="time",
        scale="0.000001",
        names="microsecond usec",
        symbols="µs \u03bcs",
    ),
    Base(
        "nanosecond", dimension="time", scale="1E-9", names="nanosecond", symbols="ns"
    ),
    Base("picosecond", "time", "1E-12", "picosecond"),
    Base("minute", "time", "60", "minute min"),
    Base("hour", dimension="time", scale="3600", names="hour hr", symbols="h"),
    Base("day", "time", "86400", "day"),
    Base("week", "time", "604800", "week wk"),
    Base("fortnight", "time", "1209600", "fortnight"),
    Base("month", "calendar", "1", "month mth mo"),
    Base("year", "calendar", "12", "year yr"),
    Base("decade", "calendar", "120", "decade"),
    Base("century", "calendar", "1200", "century", plurals="centuries"),
)
_INFORMATION = (
    Base(
        "bit",
        dimension="information",
        scale="1",
        names="bit",
        symbols="",
        prefixes=_LARGE,
        short=_LARGE,
        counted=True,
    ),
    Base("Kb", dimension="information", scale="1000", names="", symbols="Kb"),
    Base("byte", "information", "8", "byte"),
    Base(
        "KB",
        dimension="information",
        scale="8000",
        names="kilobyte kbyte",
        symbols="KB kB kb",
    ),
    Base(
        "MB",
        dimension="information",
        scale="8000000",
        names="megabyte mbyte meg",
        symbols="MB mb",
    ),
    Base(
        "GB",
        dimension="information",
        scale="8000000000",
        names="gigabyte gbyte gig",
        symbols="GB gb",
    ),
    Base(
        "TB",
        dimension="information",
        scale="8000000000000",
        names="terabyte tbyte",
        symbols="TB tb",
    ),
    Base(
        "PB",
        dimension="information",
        scale="8000000000000000",
        names="petabyte",
        symbols="PB",
    ),
    Base("EB", dimension="information", scale="8E+18", names="exabyte", symbols="EB"),
    Base("ZB", dimension="information", scale="8E+21", names="zettabyte", symbols="ZB"),
    Base("YB", dimension="information", scale="8E+24", names="yottabyte", symbols="YB"),
    Base("Mbit", dimension="information", scale="1000000", names="", symbols="Mb"),
    Base("Gbit", dimension="information", scale="1000000000", names="", symbols="Gb"),
    Base(
        "Tbit", dimension="information", scale="1000000000000", names="", symbols="Tb"
    ),
)
_TEMPERATURE = (
    Base(
        "°C",
        dimension="temperature",
        scale="1",
        names="celsius centigrade degree_celsius degree_centigrade degree_c deg_c degree_of_celsius",
        symbols="°C ℃ ºC deg_C degC",
        shift="273.15",
        plurals="degrees_celsius degrees_centigrade degrees_c degs_c",
    ),
    Base(
        "°F",
        dimension="temperature",
        scale="5",
        names="fahrenheit degree_fahrenheit degree_f deg_f",
        symbols="°F ℉ ºF deg_F degF",
        shift="459.67",
        per="9",
        plurals="degrees_fahrenheit degrees_f degs_f",
    ),
    Base(
        "K",
        dimension="temperature",
        scale="1",
        names="kelvin degree_kelvin",
        symbols="°K ºK",
        prefixes="m µ n",
        plurals="kelvins degrees_kelvin",
    ),
)
_ANGLE = (
    Base(
        "degree",
        dimension="angle",
        scale="3600",
        names="degree deg degree_of_arc",
        symbols="° º",
        plurals="degrees degs degrees_of_arc",
    ),
    Base("arcminute", "angle", "60", "minute_of_arc", plurals="minutes_of_arc"),
    Base("arcminute", "angle", "60", "arcminute arc_minute"),
    Base("arcsecond", "angle", "1", "second_of_arc", plurals="seconds_of_arc"),
    Base("arcsecond", "angle", "1", "arcsecond arc_second"),
    Base(
        "radian",
        dimension="angle",
        scale="",
        names="radian",
        symbols="rad rads",
        prefixes="m",
    ),
    Base("turn", "angle", "1296000", "turn revolution", counted=True),
)
_PHYSICS = (
    Base(
        "Hz",
        dimension="frequency",
        scale="1",
        names="hertz",
        symbols="Hz",
        prefixes="T G M k m",
        short="T G M k m",
        plurals="hertz",
    ),
    Base(
        "rpm",
        dimension="rotation",
        scale="1",
        names="revolution_per_minute",
        symbols="rpm RPM",
        plurals="revolutions_per_minute",
    ),
    Base(
        "bpm",
        dimension="pulse",
        scale="1",
        names="beat_per_minute",
        symbols="bpm BPM",
        plurals="beats_per_minute",
    ),
    Base(
        "Pa",
        dimension="pressure",
        scale="1",
        names="pascal",
        symbols="Pa",
        prefixes="G M k h m",
        short="G M k h",
    ),
    Base(
        "bar",
        dimension="pressure",
        scale="100000",
        names="",
        symbols="bar",
        prefixes="",
        short="k m",
    ),
    Base("mbar", "pressure", "100", "millibar"),
    Base(
        "atm", dimension="pressure", scale="101325", names="atmosphere", symbols="atm"
    ),
    Base(
        "psi",
        dimension="pressure",
        scale="",
        names="pound_per_square_inch",
        symbols="psi PSI",
        plurals="pounds_per_square_inch",
    ),
    Base("mmHg", dimension="pressure", scale="", names="", symbols="mmHg mm_Hg"),
    Base(
        "J",
        dimension="energy",
        scale="1",
        names="joule",
        symbols="",
        prefixes="P T G M k m µ",
        short="T G M k m",
    ),
    Base(
        "Wh",
        dimension="energy",
        scale="3600",
        names="watt_hour watthour watt-hour",
        symbols="Wh wh",
        prefixes="P T G M k m",
        short="T G M k",
    ),
    Base(
        "cal",
        dimension="energy",
        scale="4.184",
        names="calorie",
        symbols="cal",
        prefixes="k",
        short="k",
    ),
    # with a capital they are those of food
    Base(
        "kcal",
        dimension="energy",
        scale="4184",
        names="large_calorie food_calorie",
        symbols="Cal Calorie Calories",
    ),
    Base(
        "eV",
        dimension="energy",
        scale="",
        names="electronvolt electron_volt",
        symbols="eV",
        prefixes="T G M k",
        short="T G M k",
    ),
    Base(
        "BTU",
        dimension="energy",
        scale="",
        names="btu british_thermal_unit",
        symbols="BTU Btu",
    ),
    Base(
        "W",
        dimension="power",
        scale="1",
        names="watt",
        symbols="W",
        prefixes="P T G M k m µ n",
        short="T G M k m µ",
    ),
    Base(
        "hp",
        dimension="power",
        scale="",
        names="horsepower",
        symbols="hp HP bhp",
        plurals="horsepower",
    ),
    Base(
        "N",
        dimension="force",
        scale="1",
        names="newton",
        symbols="",
        prefixes="M k m",
        short="M k",
    ),
    Base(
        "Nm",
        dimension="torque",
        scale="1",
        names="newton_meter newton_metre",
        symbols="Nm N·m",
    ),
    Base(
        "V",
        dimension="voltage",
        scale="1",
        names="volt",
        symbols="V",
        prefixes="M k m µ",
        short="M k m µ",
    ),
    Base(
        "A",
        dimension="current",
        scale="1",
        names="ampere amp",
        symbols="",
        prefixes="k m µ n",
        short="k m µ",
    ),
    Base(
        "Ah",
        dimension="charge",
        scale="1",
        names="ampere_hour amp_hour amp-hour",
        symbols="Ah",
        prefixes="m",
        short="m",
    ),
    Base(
        "VA",
        dimension="apparent power",
        scale="1",
        names="volt_ampere",
        symbols="VA",
        prefixes="k M",
        short="k M",
    ),
    Base(
        "ohm",
        dimension="resistance",
        scale="1",
        names="ohm",
        symbols="Ω Ω",
        prefixes="G M k m",
        short="",
    ),
    Base("kohm", dimension="resistance", scale="1000", names="", symbols="kΩ kΩ"),
    # a bare F is that of a temperature
    Base(
        "farad",
        dimension="capacitance",
        scale="1",
        names="farad",
        symbols="",
        prefixes="m µ n p",
        short="m µ n p",
        stem="F",
    ),
    Base(
        "H",
        dimension="inductance",
        scale="1",
        names="henry",
        symbols="",
        prefixes="m µ n",
        short="m µ",
        plurals="henries henrys",
    ),
    Base(
        "T",
        dimension="flux density",
        scale="1",
        names="tesla",
        symbols="",
        prefixes="m µ n",
    ),
    Base(
        "mol",
        dimension="substance",
        scale="1",
        names="mole",
        symbols="mol",
        prefixes="k m µ n",
        short="k m µ n",
    ),
    Base("lm", dimension="light", scale="1", names="lumen", symbols="lm"),
    Base(
        "lx",
        dimension="illuminance",
        scale="1",
        names="lux",
        symbols="lx",
        plurals="lux",
    ),
    Base("cd", "luminous intensity", "1", "candela"),
    Base("dB", dimension="level", scale="1", names="decibel", symbols="dB db"),
    Base(
        "Bq",
        dimension="radioactivity",
        scale="1",
        names="becquerel",
        symbols="Bq",
        prefixes="T G M k",
        short="T G M k",
    ),
    Base(
        "Sv",
        dimension="radiation dose",
        scale="1",
        names="sievert",
        symbols="",
        prefixes="m µ",
        short="m µ",
    ),
    Base(
        "ppm",
        dimension="share",
        scale="1000",
        names="part_per_million",
        symbols="ppm",
        plurals="parts_per_million",
    ),
    Base(
        "ppb",
        dimension="share",
        scale="1",
        names="part_per_billion",
        symbols="ppb",
        plurals="parts_per_billion",
    ),
    Base(
        "knot",
        dimension="speed",
        scale="1852",
        names="knot",
        symbols="kn kt kts",
        per="3600",
    ),
    Base(
        "IU",
        dimension="biological activity",
        scale="1",
        names="international_unit",
        symbols="IU",
    ),
)

BASES = (
    *_LENGTH,
    *_AREA,
    *_VOLUME,
    *_WEIGHT,
    *_TIME,
    *_INFORMATION,
    *_TEMPERATURE,
    *_ANGLE,
    *_PHYSICS,
)

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
