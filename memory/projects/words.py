"""What a text is found by: its words, case-folded with their accents; and when two tags are the same."""

import re
import unicodedata

#: Letters of a word that are looked at: what is longer is no word that anybody types, but a digest or a picture.
MAX_WORD = 64

_ASCII_WORD = re.compile(r"[a-z0-9]+")
#: Blocks of scripts that put no spaces between words: each of their letters is a word, in texts and in questions.
_UNSPACED = (
    range(0x0E00, 0x0F00),  # Thai, Lao
    range(0x1000, 0x10A0),  # Burmese
    range(0x1780, 0x1800),  # Khmer
    range(0x3040, 0x3100),  # Hiragana, Katakana
    range(0x3400, 0x4DC0),  # Han
    range(0x4E00, 0xA000),
    range(0xF900, 0xFB00),
    range(0x20000, 0x40000),
)


def words_of(text: str) -> list[str]:
    """Return the different words of *text* in their order: letters, digits and their accents, folded, `MAX_WORD` long.

    "Max_value=2, CAFÉ" has the words max, value, 2 and café.
    """
    folded = unicodedata.normalize(
        "NFKC", unicodedata.normalize("NFKC", text).casefold()
    )
    found = _ASCII_WORD.findall(folded) if folded.isascii() else _split(folded)
    return list(dict.fromkeys(word[:MAX_WORD] for word in found))


def tag_name(tag: str) -> str:
    """Return what *tag* is compared by: `Naming` and `naming` are one tag."""
    return unicodedata.normalize(
        "NFC", unicodedata.normalize("NFC", tag.strip()).casefold()
    )


def _split(text: str) -> list[str]:
    found = list[str]()
    word = list[str]()
    for letter in text:
        is_alone = any(ord(letter) in block for block in _UNSPACED)
        is_part = unicodedata.category(letter)[0] in "LNM"
        if word and (is_alone or not is_part):
            found.append("".join(word))
            word = []
        if is_part:
            (found if is_alone else word).append(letter)
    return [*found, "".join(word)] if word else found
