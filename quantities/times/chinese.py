"""Periods in Chinese, which has no spaces between words: one pattern over the text, and tables of its words."""

import re
from collections.abc import Iterator
from datetime import date, timedelta
from typing import Final, NamedTuple

from quantities.times.calendar import Grain, Period, around, day_of, nearest, shifted, vague_period
from quantities.times.reckoning import Reckoning
from quantities.times.words import DAY, MONTH, WEEK, YEAR, LengthUnit

_DIGITS: Final = {word: number for number, word in enumerate("一二三四五六七八九", start=1)} | {"两": 2}
_STEPS: Final = {"上": -1, "上个": -1, "去": -1, "本": 0, "这": 0, "这个": 0, "今": 0, "下": 1, "下个": 1, "明": 1}
_GRAINS: Final[dict[str, Grain]] = {
    "周": "week", "星期": "week", "礼拜": "week", "周末": "weekend", "月": "month", "年": "year", "季度": "quarter",
}  # fmt: skip
_DAYS: Final = {"今天": 0, "昨天": -1, "前天": -2, "明天": 1, "后天": 2}
_UNITS: Final[dict[str, LengthUnit]] = {
    "天": DAY, "日": DAY, "周": WEEK, "星期": WEEK, "礼拜": WEEK, "月": MONTH, "年": YEAR,
}  # fmt: skip
_WEEKDAYS: Final = {letter: number for number, letter in enumerate("一二三四五六日")} | {"天": 6}

_NUMBER = r"[一二三四五六七八九十两]{1,3}|\d{1,4}"
_PERIOD = re.compile(
    rf"""
    (?P<year> \d{{4}} ) 年 (?: (?P<month> \d{{1,2}} ) 月 (?: (?P<day> \d{{1,2}} ) [日号] )? )?
  | (?P<relative> 今天 | 昨天 | 前天 | 明天 | 后天 )
  | (?P<half> [上下] ) 半年
  | 第 (?P<quarter> [一二三四1-4] ) 季度
  | (?P<step> 上个? | 下个? | 这个? | 本 ) (?P<grain> 周末 | 周 | 星期 | 礼拜 | 月 | 季度 )
  | (?P<which> [去今明] ) 年
  | (?: 最近 | 过去 ) (?P<last> {_NUMBER} ) 个? (?P<of> 天 | 日 | 周 | 星期 | 礼拜 | 月 | 年 )
  | (?P<ago> {_NUMBER} | 几 ) 个? (?P<unit> 天 | 日 | 周 | 星期 | 礼拜 | 月 | 年 ) 前
  | (?: 周 | 星期 | 礼拜 ) (?P<weekday> [一二三四五六日天] )
  | (?P<named> 十[一二]? | [一二三四五六七八九] | \d{{1,2}} ) 月 (?: (?P<number> \d{{1,2}} ) [日号] )?
    """,
    re.VERBOSE,
)
_IS_CHINESE = re.compile("[\u4e00-\u9fff]")


class FoundChinese(NamedTuple):
    """A period between *start* and *end* of the text; *is_relative* when another now would give another one."""

    period: Period
    start: int
    end: int
    is_relative: bool


def chinese_periods(folded: str, reckoning: Reckoning) -> Iterator[FoundChinese]:
    """Yield the periods of *folded*, whose digits are ASCII; nothing for a text without Chinese characters."""
    if folded.isascii() or not _IS_CHINESE.search(folded):
        return
    for match in _PERIOD.finditer(folded):
        try:
            period = _read(match, reckoning)
        except OverflowError:
            continue
        if period is not None:
            yield FoundChinese(period, match.start(), match.end(), match["year"] is None)


def _read(match: re.Match[str], reckoning: Reckoning) -> Period | None:
    today = reckoning.today
    if match["year"]:
        return _dated(int(match["year"]), match["month"], match["day"])
    if word := match["relative"]:
        return around(today, "day", _DAYS[word])
    if half := match["half"]:
        first = date(today.year, 1 if half == "上" else 7, 1)
        return Period(first, shifted(first, 6) - timedelta(days=1))
    if quarter := match["quarter"]:
        return around(date(today.year, 3 * _number(quarter) - 2, 1), "quarter")
    if grain := match["grain"]:
        return around(today, _GRAINS[grain], _STEPS[match["step"]])
    if which := match["which"]:
        return around(today, "year", _STEPS[which])
    if weekday := match["weekday"]:
        ago = (today.weekday() - _WEEKDAYS[weekday]) % 7
        return around(today, "day", -ago if reckoning.lean == "past" else (7 - ago) % 7)
    if match["named"]:
        return _of_this_time(_number(match["named"]), match["number"], reckoning)
    return _counted(match, today)


def _counted(match: re.Match[str], today: date) -> Period:
    unit = _UNITS[match["unit"] or match["of"]]
    if match["ago"] == "几":
        return vague_period(today, "few", unit)
    count = _number(match["ago"] or match["last"])
    day = shifted(today, -count * unit.months) - timedelta(days=count * int(unit.seconds // 86_400))
    return Period(day, day if match["ago"] else today)


def _dated(year: int, month: str | None, day: str | None) -> Period | None:
    first = day_of(year, int(month or 1), int(day or 1))
    return around(first, "day" if day else "month" if month else "year") if first else None


def _of_this_time(month: int, day: str | None, reckoning: Reckoning) -> Period | None:
    start = reckoning.today if day else around(reckoning.today, "month").start
    found = nearest(start, month, int(day or 1), reckoning.lean) if 1 <= month <= 12 else None
    return around(found, "day" if day else "month") if found else None


def _number(text: str) -> int:
    """Return the number below a hundred that *text* spells ("十二", "二十", "12")."""
    if text.isdecimal():
        return int(text)
    tens, ten, units = text.rpartition("十")
    return (_DIGITS.get(tens, 1) * 10 if ten else 0) + _DIGITS.get(units, 0)
