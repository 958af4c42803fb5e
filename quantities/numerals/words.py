"""The words of English numbers with their values, and nothing else."""

from decimal import Decimal

UNITS = {
    w: n for n, w in enumerate(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"])
} | {"nought": 0}
TEENS = {
    w: n
    for n, w in enumerate(
        ["ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"],
        start=10,
    )
}
TENS = {
    w: n * 10
    for n, w in enumerate(["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"], start=2)
} | {"fourty": 40, "fivety": 50, "ninty": 90}
#: Words that nothing is added to, "twentytwo" and common slips of the pen among them.
TEENS |= {"forteen": 14, "fiveteen": 15, "eightteen": 18, "ninteen": 19}
TEENS |= {f"{ten}{unit}": tens + n for ten, tens in TENS.items() for unit, n in UNITS.items() if n}
HUNDREDS = frozenset({"hundred", "hundreds"})

_BASE_SCALES = {
    "thousand": 3, "lakh": 5, "lac": 5, "lkh": 5, "crore": 7, "krore": 7, "million": 6, "billion": 9, "trillion": 12,
    "milliard": 9, "thousend": 3, "milion": 6, "millon": 6, "bilion": 9, "trilion": 12,
    "quadrillion": 15, "quintillion": 18, "sextillion": 21, "septillion": 24, "octillion": 27, "nonillion": 30,
}  # fmt: skip
#: Scale words after which a number may go on ("three crore twelve lakh").
SCALES = {
    name: Decimal(10**power) for singular, power in _BASE_SCALES.items() for name in (singular, f"{singular}s")
} | {"cr": Decimal(10**7), "crs": Decimal(10**7)}
DOZENS = dict.fromkeys(("dozen", "dozens", "doz", "dozs", "dz", "dzs", "dzn", "dzns"), Decimal(12))
#: Scales that end a number ("5k", "50 grand").
SHORT_SCALES = {
    name: Decimal(10**power)
    for power, names in (
        (3, ("k", "grand", "thou")),
        (6, ("m", "mm", "mn", "mil", "mio", "mln")),
        (9, ("b", "bn", "bln", "bil", "mrd", "mlrd")),
        (12, ("tn", "trn", "tril")),
    )
    for name in names
}
#: Short scales that are metres, millimetres or bytes unless glued to the digits or in capitals.
UNSURE_SCALES = frozenset({"m", "mm", "b"})
#: Scales that may open a number without "a" or "one" ("thousand nine hundred twenty").
OPENING_SCALES = frozenset({"hundred", *_BASE_SCALES})

#: Words that make a scale after them a loose one: "several hundred million".
BEFORE_LOOSE_SCALE = frozenset({
    "several", "few", "many", "some", "couple", "more", "countless", "various", "these", "those", "per",
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

#: From this value on an ordinal multiplies the number before it: "five thousandth".
ROUND = 100
QUARTERS = frozenset({"quarters", "halves"})
#: Every ordinal that can name a part in a longer fraction; "first" and "second" only inside "twenty-first".
ORDINAL_PARTS = {"first": 1, "second": 2, **{name: parts for name, parts in _ORDINALS.items() if name != "quarter"}}
#: The worth of "and", which only joins.
JOINS = -1
#: What each word is worth inside a number in words.
WORTH: dict[str, int] = {
    **UNITS, **TEENS, **TENS, "hundred": 100, **{name: int(value) for name, value in SCALES.items()}, "a": 1, "an": 1,
    "and": JOINS,
}  # fmt: skip

#: Endings that turn the number before them into an ordinal ("twenty-first", "one hundred fifth").
ORDINALS = frozenset({"first", "second", *_ORDINALS}) - {"quarter"}

ARTICLES = frozenset({"a", "an"})
MINUS_WORDS = frozenset({"minus", "negative"})

#: Neighbours that make a lone "one" a pronoun.
BEFORE_PRONOUN = frozenset({
    "no", "this", "that", "the", "which", "neither", "either", "each", "every", "any", "some", "another",
    "last", "next", "first", "second", "new", "old", "right", "wrong", "good", "better", "best", "other",
    "only", "same", "previous", "former", "latter", "big", "small",
})  # fmt: skip
#: What makes the "one" of "this one percent" and "the one dollar" a number after all.
COUNTED_BY_ONE = frozenset({
    "percent", "pct", "percentage", "dollar", "euro", "pound", "cent", "penny", "rupee", "million", "billion",
    "hundred", "thousand", "mile", "kilometer", "kilometre", "kilo", "inch", "hour", "week", "month", "year",
})  # fmt: skip
#: What makes "one-" a part of a name: "a one-way ticket", "a one-off", "one-on-one".
AFTER_ONE_HYPHEN = frozenset({"way", "off", "on", "time", "sided", "liner", "size"})
#: Between the two of "one by one" and "one-on-one".
JOINTS_OF_ONE = frozenset({"by", "on"})
OWNERS = frozenset({"my", "your", "his", "her", "its", "our", "their"})
AFTER_PRONOUN = frozenset({
    "of", "another", "is", "was", "can", "could", "should", "must", "may", "might", "would", "will", "who", "that",
    "day", "by", "has",
})  # fmt: skip
#: Before "one day" these say how long it is; anywhere else it is a day in a story.
BEFORE_ONE_DAY = frozenset({
    "for", "in", "within", "than", "least", "most", "only", "just", "every", "take", "takes", "took", "lasts", "about",
    "exactly", "after", "to",
})  # fmt: skip
#: What follows a "one" that opens a sentence and is nobody in particular: "one never knows".
AFTER_ANYBODY = frozenset({
    "way", "never", "always", "often", "usually", "sometimes", "also", "just", "simply", "only", "cannot", "can't",
    "couldn't", "shouldn't", "mustn't", "wouldn't", "won't", "doesn't", "didn't", "isn't", "wasn't", "hasn't", "had",
    "did", "shall", "ought", "to", "in", "on", "at", "for", "with", "without", "from", "as", "about", "after", "before",
    "into", "like", "than", "if", "when", "where", "which", "but", "so", "then", "whose", "i", "we", "you",
    "they", "he", "she", "it",
})  # fmt: skip
#: Neighbours that make "half" a time or a place instead of a number.
BEFORE_HALF = frozenset({"first", "second", "other", "better", "last", "this", "top", "bottom"})
AFTER_HALF = frozenset({"past", "way", "hearted", "time", "baked"})
#: Words after a number that make it a time of day.
CLOCK_WORDS = frozenset({"am", "pm", "o'clock", "oclock"})

#: Every word that can open an amount; the reader looks no further at any other.
OPENING_WORDS = (
    frozenset(UNITS) | frozenset(TEENS) | frozenset(TENS) | OPENING_SCALES | ARTICLES | MINUS_WORDS
    | {"half", "quarter", "point", "dozen"}
)  # fmt: skip
#: Words that are numbers in a table of numbers; a sentence uses them for much else.
LOOSE_NUMBERS = {"single": 1, "pair": 2, "couple": 2, "few": 3}
#: Those that are numbers only where nothing else is said.
LONE_NUMBERS = {"dozen": 12, "nil": 0, "naught": 0, "zilch": 0, "none": 0, "pairs": 2, "couples": 2, "dozens": 12}
#: Those whose number is a custom rather than a count.
VAGUE = frozenset({"couple", "couples", "few"})
#: Capital letters after digits that are a scale in a table of numbers ("15T", "2 G").
CAPITAL_SCALES = {"t": Decimal(10**12), "g": Decimal(10**9)}
