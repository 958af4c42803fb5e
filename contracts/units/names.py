"""Currencies and units as people write them, each with the one code it is kept under.

Only names live here: nothing is ever converted, except a hundredth of a currency ("5 cents") into the currency.
"""

import re
from dataclasses import dataclass
from decimal import Decimal

_ONE = Decimal(1)
_HUNDREDTH = Decimal("0.01")

#: ISO 4217 codes that are read; codes that are English words even in capitals (ALL, TOP, CUP) are left out.
CURRENCIES = frozenset({
    "AED", "ARS", "AUD", "BDT", "BGN", "BHD", "BRL", "BTC", "CAD", "CHF", "CLP", "CNY", "COP", "CRC", "CZK", "DKK",
    "EGP", "EUR", "GBP", "GHS", "HKD", "HUF", "IDR", "ILS", "INR", "ISK", "JPY", "KES", "KRW", "KWD", "LKR", "MAD",
    "MXN", "MYR", "NGN", "NOK", "NPR", "NZD", "OMR", "PEN", "PHP", "PKR", "PLN", "QAR", "RON", "RSD", "RUB", "SAR",
    "SEK", "SGD", "THB", "TRY", "TWD", "UAH", "USD", "UYU", "VND", "ZAR",
})  # fmt: skip
#: Codes that are no word of English and are therefore read in small letters too.
_SAFE_IN_SMALL = CURRENCIES - {"COP", "MAD", "PEN", "TRY", "RON", "SAR"}

_DOLLARS = ("AUD", "CAD", "NZD", "SGD", "HKD", "TWD")
_RUPEES = ("PKR", "LKR", "NPR")
_PESOS = ("ARS", "CLP", "COP", "PHP", "UYU")
_CROWNS = ("NOK", "DKK", "ISK", "CZK")


@dataclass(frozen=True, slots=True)
class Unit:
    """What a name of a unit means: *code* to keep, *factor* to multiply by, *also* the other codes it can mean."""

    code: str
    factor: Decimal = _ONE
    also: tuple[str, ...] = ()

    @property
    def is_currency(self) -> bool:
        """True for money, the only unit that a field without a unit lets go."""
        return self.code in CURRENCIES


_DOLLAR = Unit("USD", also=_DOLLARS)
_CENT = Unit("USD", _HUNDREDTH, also=(*_DOLLARS, "EUR", "ZAR"))

SYMBOLS = {
    "$": _DOLLAR, "€": Unit("EUR"), "£": Unit("GBP", also=("EGP",)), "¥": Unit("JPY", also=("CNY",)), "₹": Unit("INR"),
    "¢": _CENT, "₿": Unit("BTC"), "₡": Unit("CRC"), "₩": Unit("KRW"), "₽": Unit("RUB"), "₺": Unit("TRY"),
    "₫": Unit("VND"), "₴": Unit("UAH"), "฿": Unit("THB"), "₱": Unit("PHP"), "₪": Unit("ILS"), "₦": Unit("NGN"),
    "%": Unit("%"),
}  # fmt: skip

#: What stands before "$" to say whose dollar it is; single letters only when glued ("a $5 cake").
DOLLAR_PREFIXES = {
    "us": "USD", "usd": "USD", "c": "CAD", "ca": "CAD", "cad": "CAD", "a": "AUD", "au": "AUD", "aud": "AUD",
    "nz": "NZD", "nzd": "NZD", "hk": "HKD", "hkd": "HKD", "s": "SGD", "sg": "SGD", "sgd": "SGD",
    "nt": "TWD", "mex": "MXN",
    "mx": "MXN", "r": "BRL",
}  # fmt: skip

_SINGULARS = {
    "dollar": _DOLLAR, "buck": _DOLLAR, "euro": Unit("EUR"), "pound": Unit("GBP", also=("EGP",)), "quid": Unit("GBP"),
    "rupee": Unit("INR", also=_RUPEES), "rs": Unit("INR", also=_RUPEES), "yen": Unit("JPY"), "yuan": Unit("CNY"),
    "rmb": Unit("CNY"), "kuai": Unit("CNY"), "renminbi": Unit("CNY"), "franc": Unit("CHF"),
    "peso": Unit("MXN", also=_PESOS),
    "rouble": Unit("RUB"), "ruble": Unit("RUB"), "lira": Unit("TRY"), "zloty": Unit("PLN"),
    "dirham": Unit("AED", also=("MAD",)),
    "shekel": Unit("ILS"), "naira": Unit("NGN"), "rand": Unit("ZAR"), "reais": Unit("BRL"),
    "krona": Unit("SEK", also=_CROWNS), "kronor": Unit("SEK", also=_CROWNS), "krone": Unit("NOK", also=_CROWNS),
    "kroner": Unit("NOK", also=_CROWNS), "bitcoin": Unit("BTC"),
    "us dollar": Unit("USD"), "american dollar": Unit("USD"), "australian dollar": Unit("AUD"),
    "canadian dollar": Unit("CAD"), "hong kong dollar": Unit("HKD"), "singapore dollar": Unit("SGD"),
    "new zealand dollar": Unit("NZD"), "swiss franc": Unit("CHF"), "turkish lira": Unit("TRY"),
    "mexican peso": Unit("MXN"), "indian rupee": Unit("INR"), "pakistani rupee": Unit("PKR"),
    "british pound": Unit("GBP"), "pound sterling": Unit("GBP"), "japanese yen": Unit("JPY"),
    "chinese yuan": Unit("CNY"), "korean won": Unit("KRW"), "swedish krona": Unit("SEK"), "danish krone": Unit("DKK"),
    "norwegian krone": Unit("NOK"),
    "cent": _CENT, "penny": Unit("GBP", _HUNDREDTH), "pence": Unit("GBP", _HUNDREDTH), "paisa": Unit("INR", _HUNDREDTH),
    "paise": Unit("INR", _HUNDREDTH),
    "percent": Unit("%"), "per cent": Unit("%"), "percentage": Unit("%"), "pct": Unit("%"),
    "second": Unit("second"), "minute": Unit("minute"), "min": Unit("minute"), "hour": Unit("hour"), "hr": Unit("hour"),
    "h": Unit("hour"), "day": Unit("day"), "week": Unit("week"), "month": Unit("month"), "year": Unit("year"),
    "yr": Unit("year"),
    "km": Unit("km"), "kilometer": Unit("km"), "kilometre": Unit("km"), "meter": Unit("m"), "metre": Unit("m"),
    "cm": Unit("cm"), "mm": Unit("mm"), "mile": Unit("mile"), "kg": Unit("kg"), "kilogram": Unit("kg"),
    "kilo": Unit("kg"), "gram": Unit("g"), "g": Unit("g"), "mg": Unit("mg"), "lb": Unit("lb"), "ml": Unit("ml"),
    "l": Unit("l"), "liter": Unit("l"), "litre": Unit("l"), "ton": Unit("ton"), "tonne": Unit("tonne"),
    "kb": Unit("KB"), "mb": Unit("MB"), "gb": Unit("GB"), "tb": Unit("TB"), "kwh": Unit("kWh"),
}  # fmt: skip
NAMES = {name: unit for singular, unit in _SINGULARS.items() for name in (singular, f"{singular}s")}
#: Words in the longest name ("hong kong dollars").
LONGEST_NAME = 3

#: A currency glued to the digits after it ("USD115", "Rs.500"); anything else glued before digits is an identifier.
GLUED_PREFIX = "|".join([*sorted(CURRENCIES), *sorted(code.lower() for code in _SAFE_IN_SMALL), r"[Rr]s\.?"])
_CODE = re.compile(r"[A-Za-z]{3}")


def currency_code(written: str) -> str | None:
    """Return the ISO code spelled by *written* ("USD", "usd"), or None; "try" is a word, "TRY" a currency."""
    upper = written.upper()
    return upper if upper in (CURRENCIES if written.isupper() else _SAFE_IN_SMALL) else None


def unit_named(name: str) -> Unit | None:
    """Return what *name* ("$", "euros", "eur", "km", "cents") stands for, or None when it is not known here."""
    if unit := SYMBOLS.get(name):
        return unit
    if _CODE.fullmatch(name) and (code := currency_code(name)):
        return Unit(code)
    return NAMES.get(name.lower())
