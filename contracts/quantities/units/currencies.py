"""The currencies of the world by symbol, code and English name; nothing is ever exchanged.

Parts of a currency are turned into it ("5 cents" is 0.05 of a dollar). A name that several currencies share keeps the
likeliest and lists the others, so that a field that declares one of them settles it.
"""

from collections.abc import Iterator
from decimal import Decimal

from tasklore.contracts.quantities.units.codes import Unit

#: What several countries call their money: the noun with its plurals, then each code with whose it is.
_FAMILIES = (
    ("dollar dollars buck bucks", (
        "USD:us,u s,american,united states", "AUD:australian,aussie,australia", "CAD:canadian,cdn,canada",
        "NZD:new zealand,nz,kiwi", "SGD:singapore,singaporean", "HKD:hong kong,hk",
        "TWD:taiwan,taiwanese,new taiwan,nt", "BSD:bahamian", "BBD:barbadian,barbados", "BZD:belize", "BMD:bermudian",
        "BND:brunei", "FJD:fijian,fiji", "GYD:guyanese", "JMD:jamaican,jamaica", "KYD:cayman,cayman islands",
        "LRD:liberian", "NAD:namibian,namibia", "SBD:solomon islands", "SRD:surinamese", "TTD:trinidad,trinidadian",
        "XCD:east caribbean,eastern caribbean", "ZWL:zimbabwean,zimbabwe")),
    ("pound pounds", (
        "GBP:british,uk,english,scottish,sterling", "EGP:egyptian,egypt", "LBP:lebanese", "SYP:syrian",
        "SDG:sudanese", "SSP:south sudanese", "FKP:falkland", "GIP:gibraltar", "SHP:saint helena", "CYP:cypriot",
        "IEP:irish")),
    ("franc francs", (
        "CHF:swiss,switzerland", "XAF:central african,cfa", "XOF:west african", "XPF:cfp", "BIF:burundian",
        "CDF:congolese", "DJF:djiboutian", "GNF:guinean", "KMF:comorian", "RWF:rwandan", "FRF:french", "BEF:belgian",
        "LUF:luxembourg")),
    ("peso pesos", (
        "MXN:mexican", "ARS:argentine,argentinian", "CLP:chilean", "COP:colombian", "PHP:philippine,filipino",
        "UYU:uruguayan", "CUP:cuban", "DOP:dominican")),
    ("rupee rupees rs", (
        "INR:indian,india", "PKR:pakistani,pakistan", "LKR:sri lankan,sri lanka", "NPR:nepalese,nepali",
        "MUR:mauritian", "SCR:seychellois")),
    ("krona kronor kronas krone kroner krones crown crowns kr kronur kr\u00f3na kr\u00f3nur", (
        "SEK:swedish", "NOK:norwegian", "DKK:danish", "ISK:icelandic", "CZK:czech", "SKK:slovak")),
    ("koruna korunas koruny", ("CZK:czech", "SKK:slovak")),
    ("dinar dinars", (
        "KWD:kuwaiti,kuwait", "BHD:bahraini,bahrain", "DZD:algerian", "IQD:iraqi", "JOD:jordanian", "LYD:libyan",
        "RSD:serbian", "TND:tunisian", "MKD:macedonian", "YUM:yugoslav")),
    ("dirham dirhams", ("AED:uae,emirati", "MAD:moroccan")),
    ("riyal riyals rial rials", (
        "SAR:saudi,saudi arabian", "QAR:qatari,qatar", "OMR:omani", "YER:yemeni", "IRR:iranian")),
    ("shilling shillings", ("KES:kenyan,kenya", "TZS:tanzanian", "UGX:ugandan", "SOS:somali", "ATS:austrian")),
    ("schilling schillings", ("ATS:austrian",)),
    ("lira liras lire liri", ("TRY:turkish,new turkish", "ITL:italian", "MTL:maltese", "SYP:syrian", "LBP:lebanese")),
    ("mark marks", ("DEM:german,west german,deutsche,deutsch", "BAM:bosnian,convertible", "DDM:east german",
                    "FIM:finnish")),
    ("guilder guilders gulden guldens", ("NLG:dutch,netherlands", "ANG:antillean,netherlands antillean",
                                         "XCG:caribbean")),
    ("florin florins", ("AWG:aruban", "NLG:dutch")), ("won", ("KRW:korean,south korean", "KPW:north korean")),
    ("yuan yuans renminbi rmb kuai", ("CNY:chinese,china",)), ("yen yens", ("JPY:japanese,japan",)),
    ("euro euros", ("EUR:",)), ("real reals reais", ("BRL:brazilian",)),
    ("ruble rubles rouble roubles", ("RUB:russian,soviet", "BYN:belarusian")), ("leu lei", ("RON:romanian",
                                                                                           "MDL:moldovan")),
    ("lev levs leva", ("BGN:bulgarian",)), ("manat manats", ("AZN:azerbaijani", "TMT:turkmen")),
    ("som soms sum sums", ("KGS:kyrgyz", "UZS:uzbek")), ("kwacha kwachas", ("ZMW:zambian", "MWK:malawian")),
    ("bolivar bolivars bolivares bol\u00edvares", ("VES:venezuelan",)),
    ("colon colons colones col\u00f3n", ("CRC:costa rican", "SVC:salvadoran")), ("dobra dobras", ("STN:sao tomean",)),
    ("escudo escudos", ("CVE:cape verdean", "PTE:portuguese")), ("shekel shekels", ("ILS:israeli,new,new israeli",)),
    ("zloty zlotys zloties zlotych z\u0142oty z\u0142 zl", ("PLN:polish",)), ("forint forints", ("HUF:hungarian",)),
    ("baht bahts", ("THB:thai",)), ("dong dongs \u0111\u1ed3ng", ("VND:vietnamese",)),
    ("rupiah rupiahs", ("IDR:indonesian",)), ("ringgit ringgits", ("MYR:malaysian",)),
    ("taka takas", ("BDT:bangladeshi",)), ("naira nairas", ("NGN:nigerian",)), ("rand rands", ("ZAR:south african",)),
    ("hryvnia hryvnias", ("UAH:ukrainian",)), ("kuna kunas", ("HRK:croatian",)), ("tenge tenges", ("KZT:kazakh",)),
    ("lari laris", ("GEL:georgian",)), ("dram drams", ("AMD:armenian",)), ("birr birrs", ("ETB:ethiopian",)),
    ("nakfa nakfas", ("ERN:eritrean",)), ("cedi cedis", ("GHS:ghanaian,ghana",)), ("dalasi", ("GMD:gambian",)),
    ("pula", ("BWP:botswana",)), ("loti maloti", ("LSL:lesotho",)), ("lilangeni emalangeni", ("SZL:swazi",)),
    ("metical meticals meticais", ("MZN:mozambican",)), ("ariary", ("MGA:malagasy",)), ("kwanza", ("AOA:angolan",)),
    ("leone leones", ("SLE:sierra leonean",)), ("ouguiya ouguiyas", ("MRU:mauritanian",)),
    ("rufiyaa", ("MVR:maldivian",)), ("ngultrum", ("BTN:bhutanese",)), ("kyat kyats", ("MMK:burmese,myanmar",)),
    ("kip kips", ("LAK:lao,laotian",)), ("riel riels", ("KHR:cambodian",)), ("pataca patacas", ("MOP:macau",)),
    ("tugrik tugriks", ("MNT:mongolian",)), ("somoni", ("TJS:tajik",)), ("afghani afghanis", ("AFN:afghan",)),
    ("denar denars", ("MKD:macedonian",)), ("lek leks leke", ("ALL:albanian",)),
    ("sol soles", ("PEN:peruvian,nuevo,nuevos",)), ("guarani guaranis guaran\u00edes", ("PYG:paraguayan",)),
    ("boliviano bolivianos", ("BOB:bolivian",)), ("balboa balboas", ("PAB:panamanian",)),
    ("lempira lempiras", ("HNL:honduran",)), ("quetzal quetzals quetzales", ("GTQ:guatemalan",)),
    ("cordoba cordobas c\u00f3rdobas", ("NIO:nicaraguan",)), ("gourde gourdes", ("HTG:haitian",)),
    ("kina kinas", ("PGK:papua new guinea,papua new guinean",)), ("tala talas", ("WST:samoan",)),
    ("vatu vatus", ("VUV:vanuatu",)), ("pa'anga paanga", ("TOP:tongan",)), ("peseta pesetas", ("ESP:spanish",)),
    ("drachma drachmas", ("GRD:greek",)), ("markka markkas", ("FIM:finnish",)), ("punt punts", ("IEP:irish",)),
    ("litas", ("LTL:lithuanian",)), ("lats", ("LVL:latvian",)), ("kroon kroons", ("EEK:estonian",)),
    ("tolar tolars", ("SIT:slovenian",)), ("ecu ecus", ("XEU:",)), ("sdr sdrs", ("XDR:",)),
    ("bitcoin bitcoins", ("BTC:",)), ("ethereum ether ethers", ("ETH:",)), ("litecoin litecoins", ("LTC:",)),
    ("dogecoin dogecoins", ("DOGE:",)), ("monero", ("XMR:",)),
)  # fmt: skip
#: Nouns that are English words, first names or measures: read only with a country before them.
_ENGLISH = frozenset({
    "real", "reals", "som", "soms", "sol", "lev", "levs", "dram", "drams", "lek", "leks", "kina", "leke", "mark",
    "punt", "punts", "lats", "colon", "colons", "loti", "crown", "tala", "sum", "sums", "pula", "ariary",
})  # fmt: skip


def _families() -> Iterator[tuple[str, Unit]]:
    for nouns, countries in _FAMILIES:
        codes = tuple(country.partition(":")[0] for country in countries)
        for noun in nouns.split():
            if noun not in _ENGLISH:
                yield noun, Unit(codes[0], also=codes[1:])
            for country in countries:
                code, _, demonyms = country.partition(":")
                yield from (
                    (f"{demonym} {noun}", Unit(code))
                    for demonym in demonyms.split(",")
                    if demonym
                )


_FAMILY_NAMES = dict(_families())
_DOLLAR = _FAMILY_NAMES["dollar"]
_CENT = Unit("USD", Decimal("0.01"), also=(*_DOLLAR.also, "EUR", "ZAR"))

#: Parts of a currency: the names, how many make one, and whose they are, the likeliest first.
_PARTS = (
    ("cent cents", 100, _CENT.code, *_CENT.also), ("dime dimes", 10, "USD", "CAD"), ("nickel nickels", 20, "USD"),
    ("penny pennies pence", 100, "GBP", "IEP"), ("paisa paise", 100, "INR", "PKR", "NPR"), ("jiao mao", 10, "CNY"),
    ("fen", 100, "CNY"), ("sen", 100, "MYR", "IDR", "JPY"), ("kopek kopeks kopeck kopecks", 100, "RUB", "UAH", "BYN"),
    ("centavo centavos", 100, "MXN", "BRL", "ARS", "CLP", "COP", "PHP", "CUP", "DOP", "PTE"),
    ("centime centimes", 100, "EUR", "CHF", "FRF", "XOF", "XAF", "DZD", "MAD"), ("rappen", 100, "CHF"),
    ("\u00f6re ore", 100, "SEK", "NOK", "DKK"), ("\u00f8re", 100, "NOK", "DKK"), ("grosz groszy", 100, "PLN"),
    ("haler halers heller hellers", 100, "CZK"), ("stotinka stotinki", 100, "BGN"), ("bani", 100, "RON", "MDL"),
    ("lipa", 100, "HRK"), ("agora agorot", 100, "ILS"), ("kurus kuru\u015f", 100, "TRY"),
    ("piastre piastres", 100, "EGP", "LBP", "SYP"), ("fils", 1000, "KWD", "BHD", "JOD", "IQD", "AED"),
    ("halala halalas", 100, "SAR"), ("baisa", 1000, "OMR"), ("satang", 100, "THB"), ("hao", 10, "VND"),
    ("jeon", 100, "KRW"), ("kobo", 100, "NGN"), ("pesewa pesewas", 100, "GHS"), ("ngwee", 100, "ZMW"),
    ("c\u00e9ntimo c\u00e9ntimos centimo centimos", 100, "CRC", "PEN", "VES", "ESP"),
    ("pfennig pfennigs pfennige", 100, "DEM"), ("groschen", 100, "ATS"), ("satoshi satoshis", 10**8, "BTC"),
)  # fmt: skip

SYMBOLS = {
    "$": _DOLLAR, "€": Unit("EUR"), "£": Unit("GBP", also=("EGP",)), "¥": Unit("JPY", also=("CNY",)), "₹": Unit("INR"),
    "¢": _CENT, "₿": Unit("BTC"), "₡": Unit("CRC"), "₩": Unit("KRW"), "₽": Unit("RUB"), "₺": Unit("TRY"),
    "₫": Unit("VND"), "₴": Unit("UAH"), "฿": Unit("THB"), "₱": Unit("PHP"), "₪": Unit("ILS"), "₦": Unit("NGN"),
    "₨": Unit("INR", also=("PKR", "LKR", "NPR")), "₸": Unit("KZT"), "₮": Unit("MNT"), "₭": Unit("LAK"),
    "₲": Unit("PYG"), "₵": Unit("GHS"), "₼": Unit("AZN"), "₾": Unit("GEL"), "֏": Unit("AMD"), "៛": Unit("KHR"),
    "؋": Unit("AFN"), "﷼": Unit("IRR", also=("SAR", "QAR", "OMR", "YER")), "৳": Unit("BDT"), "₣": Unit("FRF"),
    "₤": Unit("ITL", also=("GBP", "TRY")), "₧": Unit("ESP"), "₯": Unit("GRD"),
}  # fmt: skip

#: What stands before "$" to say whose dollar it is; single letters only when glued ("a $5 cake").
DOLLAR_PREFIXES = {
    "us": "USD", "usd": "USD", "c": "CAD", "ca": "CAD", "cad": "CAD", "cdn": "CAD", "can": "CAD", "a": "AUD",
    "au": "AUD", "aud": "AUD", "nz": "NZD", "nzd": "NZD", "hk": "HKD", "hkd": "HKD", "s": "SGD", "sg": "SGD",
    "sgd": "SGD", "nt": "TWD", "ntd": "TWD", "twd": "TWD", "mex": "MXN", "mx": "MXN", "mxn": "MXN", "r": "BRL",
    "brl": "BRL", "fj": "FJD", "bz": "BZD", "bds": "BBD", "ec": "XCD", "tt": "TTD", "j": "JMD", "z": "ZWL", "ar": "ARS",
    "col": "COP", "rd": "DOP", "b": "BND", "mop": "MOP", "g": "GYD", "l": "LRD", "n": "NAD", "t": "TOP", "ws": "WST",
    "si": "SBD", "cl": "CLP", "cu": "CUP",
}  # fmt: skip
#: Abbreviations before a number ("Rs. 500", "RM 20", "Rp 15,000", "kr 99").
PREFIX_NAMES = {
    "rs": _FAMILY_NAMES["rupee"], "rupees": _FAMILY_NAMES["rupee"], "kr": _FAMILY_NAMES["krona"], "rm": Unit("MYR"),
    "rp": Unit("IDR"), "rmb": Unit("CNY"), "php": Unit("PHP"), "dm": Unit("DEM"), "chf": Unit("CHF"),
    "sfr": Unit("CHF"), "ksh": Unit("KES"), "tsh": Unit("TZS"), "ush": Unit("UGX"), "nis": Unit("ILS"),
    "k\u010d": Unit("CZK"), "z\u0142": Unit("PLN"), "zl": Unit("PLN"), "tk": Unit("BDT"), "skr": Unit("SEK"),
    "nkr": Unit("NOK"), "dkr": Unit("DKK"), "ptas": Unit("ESP"), "dhs": Unit("AED", also=("MAD",)), "ntd": Unit("TWD"),
    "fr": Unit("CHF", also=("FRF", "BEF", "XOF", "XAF")),
}  # fmt: skip
#: Words of `PREFIX_NAMES` that must be written with a capital.
CAPITAL_PREFIXES = frozenset({"rm", "dm", "nis", "php", "fr"})
#: Those that stand behind a number as well, written as their countries do: "15,000 Rp", "20 RM", "50 Tk".
BEHIND = frozenset(
    {
        "Rp",
        "RM",
        "DM",
        "Fr",
        "SFr",
        "KSh",
        "Tk",
        "tk",
        "Dhs",
        "dhs",
        "Ptas",
        "ptas",
        "SKr",
        "NKr",
    }
)

_OTHERS = {
    "quid": Unit("GBP"), "pound sterling": Unit("GBP"), "pounds sterling": Unit("GBP"), "sterling": Unit("GBP"),
    "deutschmark": Unit("DEM"), "deutschmarks": Unit("DEM"), "dollars us": Unit("USD"), "greenbacks": Unit("USD"),
    "d mark": Unit("DEM"), "d marks": Unit("DEM"), "european currency units": Unit("XEU"),
    "special drawing rights": Unit("XDR"), "yuan renminbi": Unit("CNY"), "loonie": Unit("CAD"), "loonies": Unit("CAD"),
    "k\u010d": Unit("CZK"), "元": Unit("CNY"), "円": Unit("JPY"), "원": Unit("KRW"), "nis": Unit("ILS"),
    "xbt": Unit("BTC"), "ntd": Unit("TWD"), "us cent": Unit("USD", _CENT.factor), "us cents": Unit("USD", _CENT.factor),
    "euro cent": Unit("EUR", _CENT.factor), "euro cents": Unit("EUR", _CENT.factor),
    "eurocent": Unit("EUR", _CENT.factor), "eurocents": Unit("EUR", _CENT.factor),
    "canadian cents": Unit("CAD", _CENT.factor), "australian cents": Unit("AUD", _CENT.factor),
    "new pence": Unit("GBP", _CENT.factor),
}  # fmt: skip


def _parts() -> Iterator[tuple[str, Unit]]:
    for names, parts, *codes in _PARTS:
        likeliest, *others = map(str, codes)
        for name in str(names).split():
            yield (
                name,
                Unit(likeliest, Decimal(1) / Decimal(str(parts)), also=tuple(others)),
            )


#: Every name of a currency and of its parts, in small letters.
CURRENCY_NAMES = _FAMILY_NAMES | dict(_parts()) | _OTHERS
#: Parts smaller than one of their currency, which a sum may end in ("3 dollars 50 cents").
PART_NAMES = frozenset(name for name, unit in CURRENCY_NAMES.items() if unit.factor < 1)
