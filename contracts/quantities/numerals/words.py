"""The words of English numbers with their values, and nothing else."""

UNITS = {
    w: n
    for n, w in enumerate(
        ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
    )
} | {"nought": 0}
TEENS = {
    w: n
    for n, w in enumerate(
        [
            "ten",
            "eleven",
            "twelve",
            "thirteen",
            "fourteen",
            "fifteen",
            "sixteen",
            "seventeen",
            "eighteen",
            "nineteen",
        ],
        start=10,
    )
}
TENS = {
    w: n * 10
    for n, w in enumerate(
        ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"],
        start=2,
    )
} | {"fourty": 40, "ninty": 90}
#: Words that nothing is added to, "twentytwo" among them.
TEENS |= {
    f"{ten}{unit}": tens + n
    for ten, tens in TENS.items()
    for unit, n in UNITS.items()
    if n
}
HUNDREDS = frozenset({"hundred", "hundreds"})

_POWERS = {
    "thousand": 3, "lakh": 5, "lac": 5, "lkh": 5, "crore": 7, "krore": 7, "million": 6, "billion": 9, "milliard": 9,
    "trillion": 12, "quadrillion": 15, "quintillion": 18, "sextillion": 21, "septillion": 24, "octillion": 27,
    "nonillion": 30, "thousend": 3, "milion": 6, "millon": 6, "bilion": 9, "trilion": 12,
}  # fmt: skip
#: Scale words after which a number may go on ("three crore twelve lakh").
SCALES = {name: 10**power for singular, power in _POWERS.items() for name in (singular, f"{singular}s")} | {
    "cr": 10**7, "crs": 10**7,
}  # fmt: skip
#: Scales by which people count what they have counted already ("eleven thousand three hundred crore").
INDIAN = frozenset(
    {"lakh", "lakhs", "lac", "lacs", "crore", "crores", "krore", "krores", "cr", "crs"}
)
DOZENS = dict.fromkeys(("dozen", "dozens", "doz", "dozs", "dz", "dzs"), 12)
#: Scales that end a number ("5k", "50 grand").
SHORT_SCALES = {
    name: 10**power
    for power, names in (
        (3, ("k", "grand", "thou")),
        (6, ("m", "mm", "mn", "mil", "mio", "mln")),
        (9, ("b", "bn", "bln", "bil", "mrd")),
        (12, ("tn", "trn", "tril")),
    )
    for name in names
}
#: Short scales that are metres, millimetres or bytes unless glued to the digits or in capitals.
UNSURE_SCALES = frozenset({"m", "mm", "b"})
#: Scales that may open a number without "a" or "one" ("thousand nine hundred twenty").
OPENING_SCALES = frozenset({"hundred", *_POWERS})
#: Words that make a scale after them a loose one: "several hundred million".
BEFORE_LOOSE_SCALE = frozenset({
    "several", "few", "many", "some", "couple", "more", "countless", "various", "these", "those", "per", "of",
    "next", "first", "last", "every",
})  # fmt: skip

_ORDINALS = {
    "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8, "ninth": 9, "tenth": 10,
    "eleventh": 11, "twelfth": 12, "thirteenth": 13, "fourteenth": 14, "fifteenth": 15, "sixteenth": 16,
    "seventeenth": 17, "eighteenth": 18, "nineteenth": 19, "twentieth": 20, "thirtieth": 30, "fortieth": 40,
    "fiftieth": 50, "sixtieth": 60, "seventieth": 70, "eightieth": 80, "ninetieth": 90, "hundredth": 100,
    "thousandth": 10**3, "millionth": 10**6, "billionth": 10**9, "trillionth": 10**12,
}  # fmt: skip
#: Names of one part ("a fifth") and of several ("two fifths"); "second" is a time, not a half.
PART = {"half": 2, **_ORDINALS}
PARTS = {"halves": 2, **{f"{name}s": parts for name, parts in _ORDINALS.items()}}
#: Places in an order; "quarter" is none.
ORDINALS = {
    "first": 1,
    "second": 2,
    **{name: place for name, place in _ORDINALS.items() if name != "quarter"},
}
#: From this value on an ordinal multiplies the number before it: "five thousandth".
ROUND = 100

ARTICLES = frozenset({"a", "an"})
MINUS_WORDS = frozenset({"minus", "negative"})
#: Neighbours that make a lone "one" a pronoun.
BEFORE_PRONOUN = frozenset({
    "no", "this", "that", "the", "which", "neither", "either", "each", "every", "any", "some", "another", "last",
    "next", "new", "old", "right", "wrong", "good", "better", "best", "other", "same", "previous", "former", "latter",
    "big", "small", *ORDINALS,
})  # fmt: skip
AFTER_PRONOUN = frozenset({
    "of", "another", "is", "was", "can", "could", "should", "must", "may", "might", "would", "will", "who", "that",
    "by", "has", "never", "always", "with", "day",
})  # fmt: skip
#: What makes "one-" a part of a name: "a one-way ticket", "a one-off".
AFTER_ONE_HYPHEN = frozenset({"way", "off", "on", "time", "sided", "liner", "size"})
#: Neighbours that make "half" a time or a place instead of a number.
BEFORE_HALF = frozenset(
    {"first", "second", "other", "better", "last", "this", "top", "bottom"}
)
AFTER_HALF = frozenset({"past", "way", "hearted", "time", "baked"})
#: Words after a number that make it a time of day.
CLOCK_WORDS = frozenset({"am", "pm", "o'clock", "oclock"})
#: Every word that can open an amount; the reader looks no further at any other.
OPENING_WORDS = (
    frozenset(UNITS) | frozenset(TEENS) | frozenset(TENS) | OPENING_SCALES | ARTICLES | MINUS_WORDS
    | {"half", "quarter", "point", "dozen"}
)  # fmt: skip
