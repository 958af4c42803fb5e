"""States and countries, which follow the name of a place behind a comma: "Springfield, Illinois" is one place.

Those that are also names of people ("Georgia", "Jordan") are left out: "Ada, Georgia and Bob" are three.
"""

from supervisor.interpretation.words import word_set

#: Of one word, in small letters.
_SINGLE = word_set(
    "alabama alaska arizona arkansas california colorado connecticut delaware florida hawaii idaho illinois"
    " indiana iowa kansas kentucky louisiana maine maryland massachusetts michigan minnesota mississippi missouri"
    " nebraska nevada ohio oklahoma oregon pennsylvania tennessee texas utah vermont wisconsin wyoming alberta"
    " manitoba ontario saskatchewan queensland tasmania bavaria tuscany sicily afghanistan albania algeria andorra"
    " angola argentina armenia australia austria azerbaijan bahamas bahrain bangladesh barbados belarus belgium"
    " belize benin bhutan bolivia botswana brazil brunei bulgaria burundi cambodia cameroon canada chile china"
    " colombia congo croatia cuba cyprus czechia denmark ecuador egypt england eritrea estonia eswatini ethiopia"
    " fiji finland france gabon gambia germany ghana greece grenada guinea guyana haiti honduras hungary iceland"
    " indonesia iran iraq ireland italy jamaica japan kazakhstan kosovo kyrgyzstan laos latvia lebanon lesotho"
    " liberia libya liechtenstein lithuania madagascar malawi malaysia maldives mali malta mauritania mauritius"
    " moldova mongolia montenegro morocco mozambique myanmar namibia nepal netherlands nicaragua niger nigeria"
    " norway oman pakistan palestine paraguay peru philippines poland portugal qatar romania russia rwanda samoa"
    " scotland senegal serbia seychelles slovakia slovenia somalia spain sudan suriname sweden switzerland syria"
    " taiwan tajikistan tanzania thailand togo tonga tunisia turkey turkmenistan tuvalu uganda ukraine uruguay"
    " uzbekistan vanuatu venezuela vietnam wales yemen zambia zimbabwe"
)
#: As they are written.
_SHORT = word_set(
    "AL AK AZ AR CA CO CT DE FL GA HI ID IL IA KS KY LA MD MA MI MN MS MO MT NE NV NH NJ NM NY NC ND OH OK OR PA"
    " RI SC SD TN TX UT VT VA WA WV WI WY DC USA US UK UAE"
)
#: These are cities as well: "Lima, New York and Oslo" are three places.
_CITIES = frozenset(
    {
        *word_set("washington singapore luxembourg panama kuwait djibouti quebec monaco guatemala mexico"),
        "new york",
        "hong kong",
        "san marino",
    }
)
_SEVERAL = frozenset(
    {
        "new hampshire", "new jersey", "new mexico", "north carolina", "north dakota", "rhode island",
        "south carolina", "south dakota", "west virginia", "british columbia", "nova scotia", "new brunswick",
        "new south wales", "costa rica", "dominican republic", "czech republic", "el salvador", "ivory coast",
        "new zealand", "north korea", "north macedonia", "northern ireland", "papua new guinea", "puerto rico",
        "saudi arabia", "sierra leone", "south africa", "south korea", "south sudan", "sri lanka",
        "united kingdom", "united states", "united arab emirates", "united states of america",
        "the netherlands", "the philippines", "the usa", "the uk", "the united states", "the united kingdom",
    }
)  # fmt: skip


def is_region(name: str, *, is_last: bool = False) -> bool:
    """Return whether *name* is a state or country that places are said to be in.

    One that is a city as well only where it *is_last* of two: "Buffalo, New York".
    """
    said = " ".join(name.lower().split())
    return said in _SINGLE or said in _SEVERAL or name in _SHORT or (is_last and said in _CITIES)
