"""Words of time in German, French, Spanish, Italian, Portuguese, Dutch and Russian, and what opens an expression."""

from typing import Final

from quantities.times import words
from quantities.times.calendar import Grain
from quantities.times.tokens import Sentence
from quantities.times.words import DAY, MONTH, WEEK, YEAR, LengthUnit

_MONTHS: Final = (
    "januar februar märz april mai juni juli august september oktober november dezember",
    "jänner feber maerz _ _ _ _ _ _ _ _ _",
    "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "_ fevrier _ _ _ _ _ aout _ _ _ decembre",
    "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "_ _ _ _ _ _ _ _ setiembre _ _ _",
    "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
    "januari februari maart april mei juni juli augustus september oktober november december",
    "январь февраль март апрель май июнь июль август сентябрь октябрь ноябрь декабрь",
    "января февраля марта апреля мая июня июля августа сентября октября ноября декабря",
    "январе феврале марте апреле мае июне июле августе сентябре октябре ноябре декабре",
)
#: Every name of a month, English ones too.
MONTHS: Final = {
    name: number for row in _MONTHS for number, name in enumerate(row.split(), start=1) if name != "_"
} | words.MONTHS
#: Names of months that are other words too: they count only beside a day, a year or "in".
UNSURE_MONTHS: Final = words.UNSURE_MONTHS | {"mars", "mayo", "mai", "mei"}
#: What joins a day, its month and its year ("10 de julio de 2026").
OF: Final = frozenset({"of", "de", "del", "di", "do"})

#: Days from the day of speaking, English words too.
RELATIVE_DAYS: Final = words.RELATIVE_DAYS | {
    "heute": 0, "gestern": -1, "vorgestern": -2, "übermorgen": 2, "aujourd'hui": 0, "hier": -1, "avant-hier": -2,
    "demain": 1, "hoy": 0, "ayer": -1, "anteayer": -2, "oggi": 0, "ieri": -1, "domani": 1, "dopodomani": 2, "hoje": 0,
    "ontem": -1, "anteontem": -2, "amanhã": 1, "vandaag": 0, "gisteren": -1, "eergisteren": -2, "morgen": 1,
    "overmorgen": 2, "сегодня": 0, "вчера": -1, "позавчера": -2, "завтра": 1, "послезавтра": 2,
}  # fmt: skip

#: Words before or after the name of a week, month or year that say which one.
FOREIGN_STEPS: Final = {
    word: step
    for step, names in (
        (-1, ("letzte letzten letzter letztes letztem vergangene vergangenen vergangenes vorige vorigen voriges"
             " dernier dernière derniere passé passée pasado pasada scorso scorsa passato passata passado passada"
             " afgelopen прошлый прошлая прошлую прошлой прошлое прошлом прошлые прошлых прошлого")),
        (1, ("nächste nächsten nächster nächstes naechste kommende kommenden kommendes prochain prochaine"
            " próximo próxima proximo proxima prossimo prossima volgend volgende komende"
             " следующий следующая следующую следующей"
            " следующем следующие следующих следующего")),
        (0, "diese diesen dieser dieses diesem cette este esta questo questa deze этот эта эту этой этом эти этих"),
    )
    for word in names.split()
}  # fmt: skip
FOREIGN_GRAINS: Final[dict[str, Grain]] = {
    "woche": "week", "monat": "month", "jahr": "year", "wochenende": "weekend", "semaine": "week", "mois": "month",
    "année": "year", "annee": "year", "l'année": "year", "l'annee": "year", "an": "year", "l'an": "year",
    "weekend": "weekend", "semana": "week", "mes": "month", "año": "year", "settimana": "week", "mese": "month",
    "anno": "year", "l'anno": "year", "mês": "month", "ano": "year", "week": "week", "maand": "month", "jaar": "year",
    "неделя": "week", "неделю": "week", "неделе": "week", "месяц": "month", "месяце": "month", "год": "year",
    "году": "year", "выходные": "weekend", "выходных": "weekend",
}  # fmt: skip
#: Weekends of several words; the longest first.
WEEKENDS: Final = (("fin", "de", "semana"), ("fim", "de", "semana"), ("fine", "settimana"), ("week", "-", "end"))

FOREIGN_UNITS: Final[dict[str, LengthUnit]] = {
    word: unit
    for unit, names in (
        (DAY, "tag tage tagen jour jours día días dia dias giorno giorni dag dagen день дня дней"),
        (WEEK, "woche wochen semaine semaines semana semanas settimana settimane week weken неделю недели недель"),
        (MONTH, "monat monate monaten mois mes meses mese mesi mês maand maanden месяц месяца месяцев"),
        (YEAR, "jahr jahre jahren an ans année années año años anno anni ano anos jaar год года лет"),
    )
    for word in names.split()
}
#: "3 days ago" is said by a word before the count or by one after the unit.
BEFORE_AGO: Final = (("il", "y", "a"), ("vor",), ("hace",), ("há",))
AFTER_AGO: Final = frozenset({"fa", "atrás", "atras", "geleden", "назад"})
FOREIGN_VAGUE: Final = {"несколько": "few", "пару": "couple", "пары": "couple"}

_OTHERS: Final = (
    "a an another half quarter couple all full whole entire in at noon midday noontime midnight now between from since"
    " few several q h the day end close start beginning first last christmas boxing new valentine valentines"
    " minute hour month year decade"
)
#: Words of every language that can open a length, a day, a time or a period; no other word is looked at twice.
OPENERS: Final = (
    frozenset(_OTHERS.split()) | frozenset(words.CARDINALS) | frozenset(words.ORDINALS) | frozenset(words.WEEKDAYS)
    | frozenset(words.STEPS) | frozenset(MONTHS) | frozenset(RELATIVE_DAYS)
    | frozenset(FOREIGN_STEPS) | frozenset(FOREIGN_GRAINS) | frozenset(FOREIGN_VAGUE)
    | frozenset(names[0] for names in (*BEFORE_AGO, *WEEKENDS))
)  # fmt: skip

_TELLING: Final = (
    "now noon noontime midday midnight am pm a.m p.m m morning afternoon evening night quarter past after at o'clock"
    " oclock end close start beginning first last ago earlier later hence till thru q h weekend eve"
)
#: Words of every language without any of which no words and bare numbers tell a day, a time of day or a period.
TELLING: Final = (
    frozenset(_TELLING.split()) | frozenset(words.ORDINALS) | words.ORDINAL_ENDINGS | frozenset(words.WEEKDAYS)
    | frozenset(words.STEPS) | frozenset(words.UNITS) | frozenset(words.SHORT_UNITS) | frozenset(MONTHS)
    | frozenset(RELATIVE_DAYS) | frozenset(FOREIGN_STEPS) | frozenset(FOREIGN_GRAINS) | frozenset(FOREIGN_UNITS)
)  # fmt: skip
#: Of these openers the next word has to be one too: "in 3 days" and "at noon", not "in Lima" and "at Nobu".
_LEADS: Final = frozenset({"in", "at"})
#: Written forms that tell one by themselves.
_WRITTEN: Final = frozenset({"iso", "length", "date", "clock"})


def end_of_openings(sentence: Sentence) -> int:
    """Return the place from which on no day, time of day or period can start: 0 in most sentences, at one quick look.

    Each holds a word that tells it, or has the "at" of "at five to seven" right before it.
    """
    for place in range(len(sentence.tokens) - 1, -1, -1):
        token = sentence.tokens[place]
        if token.text in TELLING or token.kind in _WRITTEN:
            return min(place + 2, len(sentence.tokens))
    return 0


def may_open(sentence: Sentence, place: int) -> bool:
    """False when nothing of time can start with the token at *place*."""
    token = sentence.tokens[place]
    if token.kind != "word":
        return token.kind != "symbol" or token.text not in ".,;:!?()'\"-"
    if token.text in _LEADS:
        after = sentence.word(place + 1)
        return after in OPENERS if after else sentence.kind(place + 1) != ""
    return token.text in OPENERS
