"""The currencies of the world by symbol, code and English name; nothing is ever exchanged.

Parts of a currency are turned into it ("5 cents" is 0.05 of a dollar). A name that several currencies share keeps the
likeliest and lists the others, so that a field that declares one of them settles it.
"""

from collections.abc import Iterator
from decimal import Decimal

from quantities.units.unit import Unit

_HUNDREDTH = Decimal("0.01")

#: What several countries call their money: the noun with its plurals, then each code with whose it is.
_FAMILIES = (
    ("dollar dollars buck bucks", (
        "USD:us,u s,u.s.,american,united states,micronesian,palauan,ecuadorian,british virgin islands",
        "AUD:australian,aussie,kiribati,tuvaluan,nauruan", "CAD:canadian,cdn",
        "NZD:new zealand,nz,kiwi,cook islands,niue,pitcairn,pitcairn islands",
        "SGD:singapore,singaporean", "HKD:hong kong,hk", "TWD:taiwan,taiwanese,new taiwan,nt", "BSD:bahamian,bahamas",
        "BBD:barbadian,barbados", "BZD:belize,belizean", "BMD:bermudian,bermuda", "BND:brunei,bruneian",
        "FJD:fijian,fiji", "GYD:guyanese,guyana", "JMD:jamaican,jamaica", "KYD:cayman,cayman islands,cayman island",
        "LRD:liberian,liberia", "NAD:namibian,namibia", "SBD:solomon islands,solomon island",
        "SRD:surinamese,suriname,surinam", "TTD:trinidad,trinidad and tobago,trinidadian",
        "XCD:east caribbean,eastern caribbean",
        "ZWL:zimbabwean,zimbabwe", "RHD:rhodesian")),
    ("pound pounds", (
        "GBP:british,uk,english,scottish,northern irish,alderney,sterling,guernsey,jersey,manx,isle of man",
        "EGP:egyptian,egypt",
        "LBP:lebanese", "SYP:syrian", "SDG:sudanese",
        "SSP:south sudanese", "FKP:falkland,falkland islands", "GIP:gibraltar",
        "SHP:saint helena,st helena,ascension,ascension island",
        "CYP:cypriot,cyprus", "IEP:irish", "MTP:maltese", "ILP:israeli")),
    ("franc francs", (
        "CHF:swiss", "XAF:central african,central african cfa,cfa,cameroonian,gabonese,chadian",
        "XOF:west african,west african cfa,senegalese,ivorian,malian,togolese,beninese", "XPF:cfp",
        "BIF:burundian,burundi", "CDF:congolese", "DJF:djiboutian,djibouti", "GNF:guinean,guinea",
        "KMF:comorian,comoro", "RWF:rwandan,rwanda", "FRF:french", "BEF:belgian", "LUF:luxembourg,luxembourgish",
        "MGF:malagasy", "MCF:monegasque,mon\u00e9gasque")),
    ("peso pesos", (
        "MXN:mexican,mexico,new mexican", "ARS:argentine,argentinian,argentinean", "CLP:chilean", "COP:colombian",
        "PHP:philippine,filipino", "UYU:uruguayan", "CUP:cuban", "CUC:cuban convertible", "DOP:dominican",
        "BOP:bolivian")),
    ("rupee rupees rs", (
        "INR:indian", "PKR:pakistani,pakistan", "LKR:sri lankan,sri lanka", "NPR:nepalese,nepali", "MUR:mauritian",
        "SCR:seychellois,seychelles")),
    ("krona kronor kronas krone kroner krones crown crowns kr kronur kr\u00f3na kr\u00f3nur", (
        "SEK:swedish", "NOK:norwegian", "DKK:danish,faroese", "ISK:icelandic", "CZK:czech", "SKK:slovak")),
    ("koruna korunas koruny", ("CZK:czech", "SKK:slovak")),
    ("dinar dinars", (
        "KWD:kuwaiti,kuwait", "BHD:bahraini,bahrain", "DZD:algerian", "IQD:iraqi", "JOD:jordanian", "LYD:libyan",
        "RSD:serbian", "TND:tunisian", "MKD:macedonian", "YUM:yugoslav,yugoslavian",
        "SDD:sudanese", "YDD:yemeni,south yemeni")),
    ("dirham dirhams", ("AED:uae,emirati,u.a.e.,united arab emirates", "MAD:moroccan")),
    ("riyal riyals rial rials", (
        "SAR:saudi,saudi arabian", "QAR:qatari,qatar", "OMR:omani", "YER:yemeni", "IRR:iranian,persian")),
    ("shilling shillings", ("KES:kenyan,kenya", "TZS:tanzanian", "UGX:ugandan", "SOS:somali", "ATS:austrian")),
    ("schilling schillings", ("ATS:austrian",)),
    ("lira liras lire liri", (
        "TRY:turkish,new turkish,turkish new", "ITL:italian", "MTL:maltese", "SYP:syrian", "LBP:lebanese",
        "VAL:vatican", "SML:sammarinese")),
    ("mark marks", ("DEM:german,west german,deutsche,deutsch",
        "BAM:bosnian,convertible,bosnian convertible,bosnia and herzegovina,bosnia and herzegovina convertible",
        "DDM:east german", "FIM:finnish")),
    ("ostmark ostmarks", ("DDM:",)),
    ("guilder guilders gulden guldens", ("NLG:dutch,netherlands", "ANG:antillean,netherlands antillean",
        "XCG:caribbean")),
    ("florin florins", ("AWG:aruban,aruba", "NLG:dutch")),
    ("won", ("KRW:korean,south korean", "KPW:north korean")),
    ("yuan yuans renminbi rmb kuai", ("CNY:chinese,china,offshore,onshore",)),
    ("yen yens", ("JPY:japanese",)),
    ("euro euros", ("EUR:",)),
    ("real reals reais", ("BRL:brazilian",)),
    ("ruble rubles rouble roubles", ("RUB:russian,soviet", "BYN:belarusian,belarussian,new belarusian", "LVR:latvian")),
    ("leu lei", ("RON:romanian", "MDL:moldovan")),
    ("lev levs leva", ("BGN:bulgarian",)),
    ("manat manats", ("AZN:azerbaijani,azeri", "TMT:turkmen,turkmenistan,turkmenistani")),
    ("som soms sum sums", ("KGS:kyrgyz,kyrgyzstani", "UZS:uzbek,uzbekistan,uzbekistani")),
    ("kwacha kwachas", ("ZMW:zambian,zambia", "MWK:malawian,malawi")),
    ("bolivar bolivars bolivares bol\u00edvar bol\u00edvares", ("VES:venezuelan,sovereign",)),
    ("colon colons colones col\u00f3n", ("CRC:costa rican", "SVC:salvadoran,salvadorean")),
    ("dobra dobras", ("STN:sao tomean,sao tome and principe,s\u00e3o tom\u00e9 and pr\u00edncipe",)),
    ("escudo escudos", ("CVE:cape verdean,cape verde", "PTE:portuguese")),
    ("shekel shekels sheqel sheqels", ("ILS:israeli,new,new israeli,israeli new,israel",)),
    ("zloty zlotys zloties zlotych z\u0142oty z\u0142 zl", ("PLN:polish,new polish,polish new",)),
    ("forint forints", ("HUF:hungarian",)), ("baht bahts", ("THB:thai",)),
    ("dong dongs \u0111\u1ed3ng", ("VND:vietnamese",)), ("rupiah rupiahs", ("IDR:indonesian",)),
    ("ringgit ringgits", ("MYR:malaysian",)), ("taka takas", ("BDT:bangladeshi",)),
    ("naira nairas", ("NGN:nigerian",)), ("rand rands", ("ZAR:south african",)),
    ("hryvnia hryvnias hryvnya", ("UAH:ukrainian",)), ("kuna kunas", ("HRK:croatian",)),
    ("tenge tenges", ("KZT:kazakh,kazakhstani",)), ("lari laris", ("GEL:georgian",)),
    ("dram drams", ("AMD:armenian",)), ("birr birrs", ("ETB:ethiopian",)), ("nakfa nakfas", ("ERN:eritrean",)),
    ("cedi cedis", ("GHS:ghanaian,ghana",)), ("dalasi dalasis", ("GMD:gambian",)),
    ("pula pulas", ("BWP:botswana",)), ("loti maloti", ("LSL:lesotho,basotho",)),
    ("lilangeni emalangeni", ("SZL:swazi",)),
    ("metical meticals meticais", ("MZN:mozambican,mozambique",)), ("ariary ariarys", ("MGA:malagasy",)),
    ("kwanza kwanzas", ("AOA:angolan",)), ("leone leones", ("SLE:sierra leonean,sierra leone", "SLL:old")),
    ("ouguiya ouguiyas", ("MRU:mauritanian",)), ("rufiyaa rufiyaas", ("MVR:maldivian",)),
    ("ngultrum ngultrums", ("BTN:bhutanese",)), ("kyat kyats", ("MMK:burmese,myanmar",)),
    ("kip kips", ("LAK:lao,laotian",)), ("riel riels", ("KHR:cambodian",)), ("pataca patacas", ("MOP:macanese,macau",)),
    ("tugrik tugriks togrog togrogs t\u00f6gr\u00f6g t\u00f6gr\u00f6gs", ("MNT:mongolian",)),
    ("somoni somonis", ("TJS:tajik,tajikistani",)),
    ("afghani afghanis", ("AFN:afghan",)), ("denar denars", ("MKD:macedonian",)), ("lek leks leke", ("ALL:albanian",)),
    ("sol soles", ("PEN:peruvian,nuevo,nuevos,peruvian nuevo,peruvian nuevos",)),
    ("inti intis", ("PEI:peruvian",)), ("sucre sucres", ("ECS:ecuadorian",)),
    ("karbovanets karbovanetses karbovantsiv", ("UAK:ukrainian",)), ("zaire zaires", ("ZRN:zairean,new",)),
    ("guarani guaranis guaranies guaran\u00ed guaran\u00edes", ("PYG:paraguayan",)),
    ("boliviano bolivianos", ("BOB:bolivian",)), ("balboa balboas", ("PAB:panamanian",)),
    ("lempira lempiras", ("HNL:honduran",)), ("quetzal quetzals quetzales", ("GTQ:guatemalan",)),
    ("cordoba cordobas c\u00f3rdoba c\u00f3rdobas", ("NIO:nicaraguan",)), ("gourde gourdes", ("HTG:haitian",)),
    ("kina kinas", ("PGK:papua new guinean,papua new guinea",)), ("tala talas t\u0101l\u0101", ("WST:samoan",)),
    ("vatu vatus", ("VUV:vanuatu",)), ("pa'anga paanga paangas pa\u02bbanga", ("TOP:tongan",)),
    ("peseta pesetas", ("ESP:spanish",)), ("drachma drachmas drachmae", ("GRD:greek",)),
    ("markka markkas markkaa", ("FIM:finnish",)), ("punt punts", ("IEP:irish",)), ("litas", ("LTL:lithuanian",)),
    ("lats", ("LVL:latvian",)), ("kroon kroons krooni", ("EEK:estonian",)), ("tolar tolars", ("SIT:slovenian",)),
    ("ecu ecus", ("XEU:",)), ("sdr sdrs", ("XDR:",)), ("cruzado cruzados cruzeiro cruzeiros", ("BRE:brazilian",)),
    ("austral australs", ("ARA:argentine",)), ("bitcoin bitcoins", ("BTC:",)),
    ("ethereum ethereums ether ethers", ("ETH:",)), ("litecoin litecoins", ("LTC:",)),
    ("dogecoin dogecoins", ("DOGE:",)), ("monero moneros", ("XMR:",)),
)  # fmt: skip
#: Countries whose money is called by their name as well ("japan yen").
_NAMED_BY_COUNTRY = {
    "CAD": "canada", "AUD": "australia", "JPY": "japan", "INR": "india", "BRL": "brazil", "RUB": "russia",
    "TRY": "turkey", "THB": "thailand", "PLN": "poland", "HUF": "hungary", "NGN": "nigeria", "SAR": "saudi arabia",
    "OMR": "oman", "JOD": "jordan", "IQD": "iraq", "MAD": "morocco", "CLP": "chile", "ARS": "argentina",
    "COP": "colombia", "PEN": "peru", "UAH": "ukraine", "NOK": "norway", "DKK": "denmark", "SEK": "sweden",
    "ISK": "iceland", "CHF": "switzerland", "PHP": "philippines", "MYR": "malaysia", "IDR": "indonesia",
    "ZAR": "south africa", "KRW": "korea,south korea", "CZK": "czech republic", "RON": "romania", "BGN": "bulgaria",
    "BDT": "bangladesh", "UYU": "uruguay", "DZD": "algeria", "TND": "tunisia", "IRR": "iran", "TZS": "tanzania",
    "UGX": "uganda", "VND": "vietnam",
}  # fmt: skip
#: Nouns that are English words, first names or measures: read only with a country before them.
_ENGLISH = frozenset([
    "buck", "bucks", "real", "reals", "som", "soms", "sol", "lev", "levs", "dram", "drams", "lek", "leks",
    "kina", "leke", "mark", "punt", "punts", "lats", "colon", "colons", "loti", "sovereign", "rs", "kr", "rmb",
    "dong", "dongs", "crown", "tala", "sum", "sums", "zaire", "zaires", "sucre",
])  # fmt: skip
#: English words that are money all the same right after a number.
_MONEY_ALL_THE_SAME = frozenset(["buck", "bucks", "rs", "kr", "rmb", "dong", "dongs"])


def _split(country: str) -> tuple[str, tuple[str, ...]]:
    """Return the code of a row and whose currency it is, by the adjective and by the name of the country."""
    code, _, demonyms = country.partition(":")
    return code, tuple(filter(None, (*demonyms.split(","), *_NAMED_BY_COUNTRY.get(code, "").split(","))))


def _families() -> Iterator[tuple[str, Unit]]:
    for nouns, countries in _FAMILIES:
        owners = [_split(country) for country in countries]
        codes = tuple(code for code, _ in owners)
        for noun in nouns.split():
            if noun not in _ENGLISH or noun in _MONEY_ALL_THE_SAME:
                yield noun, Unit(codes[0], also=codes[1:])
            for code, demonyms in owners:
                for demonym in demonyms:
                    yield f"{demonym} {noun}", Unit(code)


_DOLLAR = dict(_families())["dollar"]
_CENT = Unit("USD", _HUNDREDTH, also=(*_DOLLAR.also, "EUR", "ZAR"))

#: Parts of a currency: the names, how many make one, and whose they are, the likeliest first.
_PARTS = (
    ("cent cents", 100, _CENT.code, *_CENT.also), ("dime dimes", 10, "USD", "CAD"),
    ("nickel nickels", 20, "USD", "CAD"),
    ("penny pennies pence", 100, "GBP", "IEP"),
    ("paisa paise paisas", 100, "INR", "PKR", "NPR"), ("poisha", 100, "BDT"),
    ("jiao mao", 10, "CNY"), ("fen", 100, "CNY"), ("sen", 100, "MYR", "IDR", "JPY", "BND", "KHR"),
    ("kopek kopeks kopeck kopecks copeck copecks kopeyka kopiyka kopiykas kapeyka", 100, "RUB", "UAH", "BYN"),
    ("centavo centavos", 100, "MXN", "BRL", "ARS", "CLP", "COP", "PHP", "CUP", "DOP", "PTE", "BOB", "GTQ", "HNL"),
    ("centime centimes", 100, "EUR", "CHF", "FRF", "XOF", "XAF", "DZD", "MAD"), ("rappen", 100, "CHF"),
    ("\u00f6re ore oere", 100, "SEK", "NOK", "DKK"), ("\u00f8re", 100, "NOK", "DKK"), ("eyrir aurar", 100, "ISK"),
    ("grosz groszy grosze", 100, "PLN"),
    ("haler halers haleru heller hellers hal\u00e9\u0159 hal\u00e9\u0159e", 100, "CZK"),
    ("filler fillers fill\u00e9r", 100, "HUF"), ("stotinka stotinki", 100, "BGN"), ("bani", 100, "RON", "MDL"),
    ("lipa lipas", 100, "HRK"), ("agora agorot", 100, "ILS"), ("kurus kuru\u015f", 100, "TRY"),
    ("piastre piastres piaster piasters", 100, "EGP", "LBP", "SYP"), ("fils", 1000, "KWD", "BHD", "JOD", "IQD", "AED"),
    ("halala halalas halalah", 100, "SAR"), ("baisa baisas baiza", 1000, "OMR"), ("millime millimes", 1000, "TND"),
    ("satang satangs", 100, "THB"), ("xu", 100, "VND"), ("hao h\u00e0o", 10, "VND"), ("jeon chon", 100, "KRW", "KPW"),
    ("kobo kobos", 100, "NGN"), ("pesewa pesewas", 100, "GHS"), ("ngwee", 100, "ZMW"), ("tambala", 100, "MWK"),
    ("thebe", 100, "BWP"), ("lisente sente", 100, "LSL"), ("butut bututs", 100, "GMD"), ("tetri", 100, "GEL"),
    ("tiyin tiyn", 100, "KZT", "UZS", "KGS"), ("luma", 100, "AMD"), ("qapik gopik q\u0259pik", 100, "AZN"),
    ("diram", 100, "TJS"),
    ("laari", 100, "MVR"), ("chetrum", 100, "BTN"), ("pya pyas", 100, "MMK"), ("toea", 100, "PGK"),
    ("seniti", 100, "TOP"), ("sene", 100, "WST"), ("avo avos", 100, "MOP"), ("sentimo sentimos", 100, "PHP"),
    ("centesimo centesimos", 100, "UYU", "PAB", "ITL"), ("c\u00e9ntimo c\u00e9ntimos centimo centimos", 100,
     "CRC", "PEN", "VES", "ESP"),
    ("pul", 100, "AFN"), ("deni", 100, "MKD"), ("khoums", 5, "MRU"), ("santim santims", 100, "ETB"),
    ("iraimbilanja", 5, "MGA"), ("mongo m\u00f6ng\u00f6", 100, "MNT"), ("tennesi", 100, "TMT"),
    ("fening feninga", 100, "BAM"),
    ("pfennig pfennigs pfennige", 100, "DEM"), ("groschen", 100, "ATS"), ("satoshi satoshis", 10**8, "BTC"),
    ("millibitcoin millibitcoins mbtc", 1000, "BTC"), ("penni penni\u00e4", 100, "FIM"),
    ("qindarka qindark\u00eb qindarke qintar qintars", 100, "ALL"), ("santeem santeems", 100, "DZD"),
    ("c\u00eantimo c\u00eantimos", 100, "AOA", "STN", "MZN"), ("chhertum chhertums", 100, "BTN"),
    ("stotin stotins", 100, "SIT"), ("halier haliers halierov", 100, "SKK"), ("senti", 100, "EEK"),
    ("centas centai", 100, "LTL"), ("paras", 100, "RSD", "YUM"), ("qirsh", 100, "EGP", "SAR"),
    ("millieme milliemes", 1000, "EGP"), ("annas", 16, "INR", "PKR"), ("farthings farthing", 960, "GBP"),
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
    "au": "AUD", "aud": "AUD", "aus": "AUD", "nz": "NZD", "nzd": "NZD", "hk": "HKD", "hkd": "HKD", "s": "SGD",
    "sg": "SGD", "sgd": "SGD", "nt": "TWD", "ntd": "TWD", "twd": "TWD", "mex": "MXN", "mx": "MXN", "mxn": "MXN",
    "r": "BRL", "brl": "BRL", "fj": "FJD", "bz": "BZD", "bds": "BBD", "ec": "XCD", "tt": "TTD", "j": "JMD",
    "ja": "JMD", "z": "ZWL", "ar": "ARS", "col": "COP", "rd": "DOP", "b": "BND", "mop": "MOP", "ci": "KYD", "g": "GYD",
    "l": "LRD", "n": "NAD", "t": "TOP", "ws": "WST", "si": "SBD", "cl": "CLP", "clp": "CLP", "cu": "CUP", "usa": "USD",
    "arg": "ARS", "cop": "COP", "jmd": "JMD", "fjd": "FJD", "bnd": "BND", "ttd": "TTD", "xcd": "XCD",
}  # fmt: skip
#: Abbreviations before a number ("Rs. 500", "RM 20", "Rp 15,000", "kr 99").
PREFIX_NAMES = {
    "rs": Unit("INR", also=("PKR", "LKR", "NPR", "MUR", "SCR")), "kr": Unit("SEK", also=("NOK", "DKK", "ISK", "CZK")),
    "rm": Unit("MYR"), "rp": Unit("IDR"), "rmb": Unit("CNY"), "php": Unit("PHP"), "dm": Unit("DEM"),
    "chf": Unit("CHF"), "sfr": Unit("CHF"), "ksh": Unit("KES"), "kshs": Unit("KES"), "tsh": Unit("TZS"),
    "ush": Unit("UGX"), "nis": Unit("ILS"), "k\u010d": Unit("CZK"), "z\u0142": Unit("PLN"), "zl": Unit("PLN"),
    "tk": Unit("BDT"), "skr": Unit("SEK"), "nkr": Unit("NOK"), "dkr": Unit("DKK"), "ikr": Unit("ISK"),
    "fmk": Unit("FIM"), "dfl": Unit("NLG"), "hfl": Unit("NLG"), "ffr": Unit("FRF"), "bfr": Unit("BEF"),
    "lfr": Unit("LUF"), "ptas": Unit("ESP"), "pta": Unit("ESP"), "dhs": Unit("AED", also=("MAD",)),
    "shs": Unit("KES", also=("TZS", "UGX", "SOS")), "fr": Unit("CHF", also=("FRF", "BEF", "XOF", "XAF")),
    "ntd": Unit("TWD"), "rupees": Unit("INR", also=("PKR", "LKR", "NPR", "MUR", "SCR")),
}  # fmt: skip
#: Words of `PREFIX_NAMES` that must be written in capitals.
CAPITAL_PREFIXES = frozenset({"rm", "dm", "nis", "php", "fr"})
#: Those that stand behind a number as well, written as their countries do: "15,000 Rp", "20 RM", "50 Tk".
BEHIND = frozenset(
    {"Rp", "RM", "DM", "Fr", "SFr", "KSh", "Tk", "tk", "Dhs", "dhs", "Ptas", "ptas", "SKr", "NKr", "DKr"}
)

_OTHERS = {
    "quid": Unit("GBP"), "pound sterling": Unit("GBP"), "pounds sterling": Unit("GBP"), "sterling": Unit("GBP"),
    "deutschmark": Unit("DEM"), "deutschmarks": Unit("DEM"), "deutschemarks": Unit("DEM"),
    "dollars us": Unit("USD"), "dollars canadian": Unit("CAD"), "greenbacks": Unit("USD"),
    "d mark": Unit("DEM"), "d marks": Unit("DEM"), "european currency unit": Unit("XEU"),
    "european currency units": Unit("XEU"), "special drawing right": Unit("XDR"), "special drawing rights": Unit("XDR"),
    "british pound sterling": Unit("GBP"), "british pounds sterling": Unit("GBP"), "yuan renminbi": Unit("CNY"),
    "chinese yuan renminbi": Unit("CNY"), "renminbi yuan": Unit("CNY"), "chinese renminbi yuan": Unit("CNY"),
    "loonie": Unit("CAD"), "loonies": Unit("CAD"), "cruzeiro real": Unit("BRR"), "cruzeiros reais": Unit("BRR"),
    "k\u010d": Unit("CZK"), "元": Unit("CNY"), "円": Unit("JPY"), "원": Unit("KRW"), "nis": Unit("ILS"),
    "xbt": Unit("BTC"), "ntd": Unit("TWD"),
    "american cent": Unit("USD", _HUNDREDTH), "american cents": Unit("USD", _HUNDREDTH),
    "us cent": Unit("USD", _HUNDREDTH), "us cents": Unit("USD", _HUNDREDTH), "u s cents": Unit("USD", _HUNDREDTH),
    "euro cent": Unit("EUR", _HUNDREDTH), "euro cents": Unit("EUR", _HUNDREDTH),
    "eurocent": Unit("EUR", _HUNDREDTH), "eurocents": Unit("EUR", _HUNDREDTH),
    "canadian cents": Unit("CAD", _HUNDREDTH), "australian cents": Unit("AUD", _HUNDREDTH),
    "new pence": Unit("GBP", _HUNDREDTH), "new shekels": Unit("ILS"), "new shekel": Unit("ILS"),
}  # fmt: skip


def _parts() -> Iterator[tuple[str, Unit]]:
    """Yield "cents", and with whose they are "hong kong cents"."""
    owners = {code: demonyms for _, countries in _FAMILIES for code, demonyms in map(_split, countries)}
    for names, parts, *codes in _PARTS:
        factor = Decimal(1) / Decimal(str(parts))
        for name in str(names).split():
            yield name, Unit(str(codes[0]), factor, also=tuple(map(str, codes[1:])))
            for code in map(str, codes):
                for demonym in owners.get(code, ()):
                    yield f"{demonym} {name}", Unit(code, factor)


#: Every name of a currency and of its parts, in small letters.
CURRENCY_NAMES = {name: unit for name, unit in _families() if not name.startswith(" ")} | dict(_parts()) | _OTHERS
#: Parts smaller than one of their currency, which a sum may end in ("3 dollars 50 cents").
PART_NAMES = frozenset(name for name, unit in CURRENCY_NAMES.items() if unit.factor < 1)
