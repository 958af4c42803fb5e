"""The letters that stand for currencies: ISO 4217 codes, and which of them may be read in running text."""

from dataclasses import dataclass
from decimal import Decimal
from itertools import product

#: Every code of ISO 4217 that money is kept in, those of money that is gone among them, and the letters by which the
#: best known coins without a country are traded.
CURRENCIES = frozenset({
    "AED", "AFN", "ALL", "AMD", "ANG", "AOA", "ARS", "AUD", "AWG", "AZN", "BAM", "BBD", "BDT", "BGN",
    "BHD", "BIF", "BMD", "BND", "BOB", "BRL", "BSD", "BTC", "BTN", "BWP", "BYN", "BZD", "CAD", "CDF",
    "CHF", "CLP", "CNY", "COP", "CRC", "CUC", "CUP", "CVE", "CZK", "DJF", "DKK", "DOP", "DZD", "EGP",
    "ERN", "ETB", "EUR", "FJD", "FKP", "GBP", "GEL", "GHS", "GIP", "GMD", "GNF", "GTQ", "GYD", "HKD",
    "HNL", "HRK", "HTG", "HUF", "IDR", "ILS", "INR", "IQD", "IRR", "ISK", "JMD", "JOD", "JPY", "KES",
    "KGS", "KHR", "KMF", "KPW", "KRW", "KWD", "KYD", "KZT", "LAK", "LBP", "LKR", "LRD", "LSL", "LYD",
    "MAD", "MDL", "MGA", "MKD", "MMK", "MNT", "MOP", "MRU", "MUR", "MVR", "MWK", "MXN", "MYR", "MZN",
    "NAD", "NGN", "NIO", "NOK", "NPR", "NZD", "OMR", "PAB", "PEN", "PGK", "PHP", "PKR", "PLN", "PYG",
    "QAR", "RON", "RSD", "RUB", "RWF", "SAR", "SBD", "SCR", "SDG", "SEK", "SGD", "SHP", "SLE", "SLL",
    "SOS", "SRD", "SSP", "STN", "SVC", "SYP", "SZL", "THB", "TJS", "TMT", "TND", "TOP", "TRY", "TTD",
    "TWD", "TZS", "UAH", "UGX", "USD", "UYU", "UZS", "VES", "VND", "VUV", "WST", "XAF", "XCD", "XCG",
    "XOF", "XPF", "YER", "ZAR", "ZMW", "ZWG", "ZWL", "ATS", "BEF", "CYP", "DEM", "EEK", "ESP", "FIM",
    "FRF", "GRD", "IEP", "ITL", "LTL", "LUF", "LVL", "MTL", "NLG", "PTE", "SIT", "SKK",
    "XEU", "DDM", "YUM", "BRE", "ARA", "BRR", "RHD", "MTP", "ILP", "MGF", "MCF", "BOP", "SDD", "YDD",
    "VAL", "SML", "LVR", "PEI", "ECS", "UAK", "ZRN", "XDR", "ETH", "LTC", "XMR", "XRP", "DOGE",
})  # fmt: skip
#: Codes that are words of English or names of people even in capitals; money in them is read by its name.
_ENGLISH = frozenset(
    {"ALL", "BAM", "BOB", "CUP", "GEL", "LAK", "MOP", "NAD", "SIT", "SOS", "TOP"}
)
#: Codes of money that is gone, whose letters mean other things today ("MCF" are cubic feet).
_GONE = frozenset({
    "BOP", "BRR", "ECS", "ILP", "LVR", "MCF", "MGF", "MTP", "PEI", "RHD", "SDD", "SML", "UAK", "VAL", "YDD", "ZRN",
})  # fmt: skip
#: Codes that are read when they stand in capitals.
IN_CAPITALS = CURRENCIES - _ENGLISH - _GONE
#: Codes of currencies that are much traded; those of them that are no words are read in small letters too.
_MAJOR = (
    "USD", "EUR", "GBP", "JPY", "CHF", "AUD", "CAD", "NZD", "SEK", "NOK", "DKK", "ISK", "CNY", "INR",
    "HKD", "SGD", "PLN", "CZK", "HUF", "RUB", "BRL", "MXN", "ZAR", "KRW", "ILS", "AED", "IDR", "MYR",
    "PHP", "THB", "TWD", "VND", "BTC", "NGN", "KES", "EGP", "PKR", "ARS", "BDT", "BGN", "BHD", "CLP",
    "CRC", "GHS", "KWD", "LKR", "NPR", "OMR", "QAR", "RSD", "UAH", "UYU", "TRY", "COP", "SAR", "RON",
    "DEM", "FRF", "ITL", "ESP", "NLG", "ETH", "LTC",
)  # fmt: skip
_ENGLISH_IN_SMALL = frozenset(
    {"ARS", "COP", "DEM", "ESP", "PHP", "RON", "RUB", "SAR", "TRY"}
)
IN_SMALL = frozenset(_MAJOR) - _ENGLISH_IN_SMALL

_CODE_LENGTH = 3
#: What finance glues to a code: thousands, millions, billions ("KEUR 5", "30 MUSD", "EURm 12", "USDbn 3").
_BEFORE = {
    "K": 3,
    "k": 3,
    "T": 3,
    "M": 6,
    "m": 6,
    "MM": 6,
    "Mn": 6,
    "mn": 6,
    "B": 9,
    "bn": 9,
    "Bn": 9,
    "BN": 9,
}
_AFTER = {"k": 3, "K": 3, "m": 6, "mn": 6, "M": 6, "bn": 9, "b": 9}
#: A code with its scale in one word: the code and the power of ten.
SCALED_CODES = {
    f"{scale}{code}": (code, power)
    for (scale, power), code in product(_BEFORE.items(), _MAJOR)
} | {
    f"{code}{scale}": (code, power)
    for (scale, power), code in product(_AFTER.items(), _MAJOR)
}
#: Those that companies report in are also written small; "maud", "mils" and "meth" are other words.
_REPORTED_IN = (
    "USD",
    "EUR",
    "GBP",
    "JPY",
    "CHF",
    "CAD",
    "SEK",
    "NOK",
    "DKK",
    "INR",
    "CNY",
    "HKD",
    "SGD",
    "NZD",
    "PLN",
)
SCALED_CODES |= {
    f"{scale}{code}".lower(): (code, power)
    for (scale, power), code in product((("K", 3), ("M", 6)), _REPORTED_IN)
}


#: Every code in small letters, to tell at one look that a word is none of them.
CODES_IN_SMALL = frozenset(
    code.lower() for code in (*IN_CAPITALS, *IN_SMALL, *SCALED_CODES)
)


def currency_code(written: str) -> str | None:
    """Return the ISO code spelled by *written* ("USD", "usd"), or None; "try" is a word, "TRY" a currency."""
    if len(written) != _CODE_LENGTH or not (written.isascii() and written.isalpha()):
        return None
    upper = written.upper()
    return upper if upper in (IN_CAPITALS if written.isupper() else IN_SMALL) else None


@dataclass(frozen=True, slots=True)
class Unit:
    """What a name of a unit means: *code* to keep, *factor* to multiply by, *also* the other codes it can mean."""

    code: str
    factor: Decimal = Decimal(1)
    also: tuple[str, ...] = ()

    @property
    def is_currency(self) -> bool:
        """True for money, the only unit that a field without a unit lets go."""
        return self.code in CURRENCIES
