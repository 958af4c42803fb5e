"""How the people of a country write digits: their decimal mark, and hence what "1.500" is to them."""

from typing import Final

from tasklore.contracts.quantities.errors import InvalidAmount
from tasklore.contracts.quantities.numerals.digit_runs import DecimalMark

#: Languages that write 1,5; every other one here writes 1.5.
_COMMA: Final = frozenset({
    "af", "az", "be", "bg", "bs", "ca", "cs", "da", "de", "el", "es", "et", "eu", "fi", "fo", "fr", "gl", "hr",
    "hu", "hy", "id", "is", "it", "ka", "kk", "lt", "lv", "mk", "nb", "nl", "nn", "no", "pl", "pt", "ro", "ru",
    "sk", "sl", "sq", "sr", "sv", "tr", "uk", "uz", "vi",
})  # fmt: skip
_POINT: Final = frozenset({
    "am", "ar", "bn", "cy", "en", "fa", "fil", "ga", "gu", "he", "hi", "ja", "kn", "ko", "ml", "mr", "ms", "ne",
    "pa", "si", "sw", "ta", "te", "th", "ur", "zh",
})  # fmt: skip
#: Countries that write otherwise than most who speak their language.
_COUNTRIES: Final[dict[str, DecimalMark]] = {
    "de-CH": ".", "de-LI": ".", "it-CH": ".", "fr-CH": ".", "en-ZA": ",", "es-MX": ".", "es-US": ".", "es-GT": ".",
    "es-HN": ".", "es-NI": ".", "es-PA": ".", "es-PE": ".", "es-PR": ".", "es-SV": ".", "es-DO": ".",
}  # fmt: skip


def mark_of(locale: str) -> DecimalMark:
    """Return the decimal mark of a BCP 47 tag such as "en", "en-IN", "de-CH" or "pt_BR".

    Raises:
        InvalidAmount: the language is not known here; give the decimal mark itself.
    """
    language, _, country = locale.replace("_", "-").partition("-")
    language = language.lower()
    if mark := _COUNTRIES.get(f"{language}-{country.upper()}"):
        return mark
    if language in _COMMA:
        return ","
    if language in _POINT:
        return "."
    raise InvalidAmount(
        f"{locale!r} is not a known locale; give decimal_mark '.' or ',' instead"
    )
