"""What the people of the made-up chats live through and how they speak of it: two parts that share nothing."""

from dataclasses import dataclass

__all__ = ["PARTS", "Fact", "Part"]


@dataclass(frozen=True, slots=True)
class Fact:
    """A kind of thing that happens to a person *times* times, each with *values* for its *slots*.

    A wording is a statement, or what the assistant asks and the person answers. Questions are asked of one of them
    (`single`), of all (`several`), of the last one (`newest`) or of those in a `{period}` (`at_time`).
    """

    name: str
    times: int
    slots: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]
    wordings: tuple[str | tuple[str, str], ...]
    single: tuple[str, ...] = ()
    several: tuple[str, ...] = ()
    newest: tuple[str, ...] = ()
    at_time: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Part:
    """The vocabulary of one part: facts, chatter with its *fillers*, the assistant's words, and what was never said."""

    facts: tuple[Fact, ...]
    chatter: tuple[str, ...]
    answers: tuple[str, ...]
    replies: tuple[str, ...]
    fillers: dict[str, tuple[str, ...]]
    never: tuple[str, ...]


def _pairs(text: str) -> tuple[tuple[str, ...], ...]:
    return tuple(
        tuple(part.strip() for part in line.split("|"))
        for line in text.strip().splitlines()
    )


def _lines(text: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in text.strip().splitlines())


_DEVELOPMENT = Part(
    facts=(
        Fact(
            "trip",
            4,
            ("city", "why"),
            _pairs(
                "Lisbon|the tiles\nKrakow|a wedding\nOslo|the fjords\nNaples|the pizza\nGhent|a concert\nSplit|the sea"
            ),
            (
                "Just back from {city}, went there for {why}",
                "we visited {city} last weekend because of {why}",
                "Flew to {city} on Thursday, {why} was worth it",
                "{city} was lovely, {why} most of all",
                "travelled to {city}! {why} and lots of walking",
                "{city} is a city I visited for {why}",
                "We finally made it to {city}, mostly for {why}",
                "so {city}... {why} did not disappoint",
            ),
            single=("What did I go to {city} for?", "Have I ever been to {city}?"),
            several=("Which cities did I visit?",),
            at_time=("Where did I travel in {period}?",),
        ),
        Fact(
            "child",
            2,
            ("name", "does"),
            _pairs(
                "Mia|plays the cello\nTheo|collects stamps\nIda|swims for a club\nEmil|builds robots"
            ),
            (
                "my girl {name} {does} now",
                "{name}, my youngest, {does}",
                "Our kid {name} {does}, can you believe it",
                "proud parent here: {name} {does}",
                "{name} {does} since September",
                "My child {name} {does} every week",
                ("What does your child do after school?", "{name} {does}"),
                "{name} {does}, that kid never stops",
            ),
            single=("What does my daughter or son {name} do?", "What is {name} into?"),
        ),
        Fact(
            "job",
            2,
            ("company", "role"),
            _pairs(
                "Nordwind|data analyst\nBrightpath|team lead\nKestrel Labs|field engineer\nMaple & Co|buyer"
            ),
            (
                "Started to work at {company} as {role} today",
                "I now work for {company}, {role} from Monday",
                "new job!! {role} at {company}",
                "my employer is {company} now, I'm {role}",
                "I work as the new {role} at {company}",
                "first week at {company}, being {role} is fun",
                ("How is work?", "{company} made me {role}"),
                "Got the offer from {company}: {role}",
            ),
            newest=("Where do I work now?", "Who is my current employer?"),
        ),
        Fact(
            "home",
            2,
            ("street", "town"),
            _pairs(
                "Linden Road|Bath\nMill Lane|York\nStation Street|Leeds\nHarbour View|Hull"
            ),
            (
                "We live on {street} in {town} since this week",
                "my new address: {street}, {town}",
                "we live in {town} now, {street}",
                "The flat on {street}, {town} is ours now",
                "unpacking boxes at {street} in {town}",
                "our address is {street}, the town is {town}",
                ("Where do you live these days?", "{street}, {town}"),
                "Keys for {street} in {town} today!",
            ),
            newest=("What is my address?", "Which town do I live in at the moment?"),
        ),
        Fact(
            "purchase",
            4,
            ("thing", "price"),
            _pairs(
                "tent|180 euros\nespresso machine|420 euros\nroad bike|950 euros\nstanding desk|310 euros\n"
                "telescope|640 euros\nsewing machine|205 euros"
            ),
            (
                "bought a {thing} for {price}",
                "I bought myself a {thing}, {price}",
                "The {thing} I bought arrived! {price} well spent",
                "ordered a {thing} yesterday ({price})",
                "so my new {thing} cost {price}",
                "bought a {thing} second hand, {price}",
                "finally own a {thing}, {price}",
                "paid {price} for a {thing}",
            ),
            single=("How much did I pay for the {thing}?", "What did my {thing} cost?"),
            several=("What things did I buy?",),
            at_time=("What did I buy in {period}?",),
        ),
        Fact(
            "health",
            2,
            ("what", "doctor"),
            _pairs(
                "a sprained ankle|Dr Osei\nhay fever|Dr Lindqvist\na root canal|Dr Moreau\nmigraines|Dr Patel"
            ),
            (
                "saw {doctor} about {what}",
                "{doctor} says it is {what}",
                "was at {doctor}'s practice, {what}",
                "{what}, says {doctor}. Lovely.",
                "had to see {doctor} because of {what}",
                "{doctor} is treating me for {what}",
                ("What did the doctor say?", "{what}, according to {doctor}"),
                "so I have {what}, {doctor} confirmed it",
            ),
            single=("Which physician looked after {what}?", "What did {doctor} find?"),
        ),
        Fact(
            "pet",
            2,
            ("name", "animal"),
            _pairs("Rex|beagle\nMomo|tabby\nPickle|tortoise\nZuko|parrot"),
            (
                "we adopted a pet, a {animal} called {name}",
                "{name} the {animal} is our new pet",
                "say hi to {name}, our {animal}",
                "Our new {animal} {name} ate my slippers",
                "{name}, that {animal} of ours, is asleep",
                "picked up {name} the {animal} today",
                "My {animal} {name} is a menace",
                "a {animal} called {name} is in the house",
            ),
            single=("What kind of animal is {name}?",),
            several=("What are my pets called?",),
        ),
        Fact(
            "book",
            3,
            ("title", "by"),
            _pairs(
                "The Salt Road|Ana Ruiz\nNine Lanterns|T. Okafor\nGlass Harbour|Lena Voss\nA Quiet Engine|P. Dunne\nOrchard of Bees|M. Sato"
            ),
            (
                "finished {title} by {by} last night",
                "I'm reading {title} ({by})",
                "I read {title}, {by} made me cry",
                "{title} by {by} is the best thing I read",
                "a book I started: {title} by {by}",
                "halfway through {by}'s book {title}",
                "put {title} by {by} on your list",
                "could not put down {title}, thank you {by}",
            ),
            single=("Who wrote {title}?",),
            several=("Which books have I read?",),
        ),
        Fact(
            "restaurant",
            3,
            ("place", "dish"),
            _pairs(
                "Casa Verde|lamb tacos\nThe Copper Pot|mushroom pie\nSaffron Yard|dal\nBlue Gate|grilled squid\nNoodle Bar 9|dan dan noodles"
            ),
            (
                "had the {dish} at {place}, wow",
                "{place} does a great {dish}",
                "dinner at {place}: {dish}",
                "the {dish} at {place} changed my life",
                "we ate {dish} at {place}",
                "tried {place}, go for the {dish}",
                "{place}! {dish}! that's all",
                "lunch was {dish} from {place}",
            ),
            single=("What did I eat at {place}?",),
        ),
    ),
    chatter=_lines("""
        can you check whether it rains {day}
        haha yes exactly
        remind me to water the {plant}
        what is a good word for {mood}
        my neighbour has a new dog, it barks all night
        if I ever win the lottery I fly to {far}
        set a timer for {number} minutes
        ugh traffic again
        what should I cook with {plant}
        my colleague bought a boat of all things
        is {far} nice in winter?
        translate '{mood}' into French
        I feel {mood} today
        never mind, found it
        who won the match on {day}?
        how many grams are {number} ounces
        the meeting on {day} was far too long
        tell me a joke about {plant}
        my sister in law wants a parrot, terrible idea
        ok thanks
        what does 'ambivalent' mean
        summarise this article for me please
        my boss is in a {mood} mood
        did you know that {far} has no trains?
        I could eat a horse
        the train was late on {day}
        what's on tv {day}
        write a short note to my landlord about the {plant}
        good morning!
        split {number} by 3
    """),
    answers=_lines("""
        Sure, here you go.
        It looks dry on {day}.
        Done, I set it for {number} minutes.
        Happy to help!
        I hear {far} is quiet in winter.
        That sounds {mood}.
        Here is a recipe with {plant}.
        You're welcome.
    """),
    replies=(
        "Nice, thanks for telling me.",
        "Oh, how was that?",
        "Good to know!",
        "I will keep that in mind.",
    ),
    fillers={
        "day": ("on Monday", "on Tuesday", "on Friday", "tomorrow", "on Sunday"),
        "plant": ("basil", "ferns", "tomatoes", "leeks", "ivy"),
        "mood": ("tired", "cheerful", "grumpy", "restless", "calm"),
        "far": ("Peru", "Iceland", "Japan", "Kenya", "Chile"),
        "number": ("7", "12", "25", "40", "90"),
    },
    never=(
        "What is my blood type?",
        "When is my wedding anniversary?",
        "Which gym do I go to?",
        "What is my passport number?",
        "Who is my accountant?",
        "What instrument do I play?",
        "Which university did I attend?",
        "What is my shoe size?",
        "Where did I learn to ski?",
        "What is my mother's maiden name?",
        "Which phone do I have?",
        "What is my brother called?",
    ),
)

_HELD = Part(
    facts=(
        Fact(
            "concert",
            4,
            ("band", "venue"),
            _pairs(
                "The Hollow Pines|Roxy Hall\nMarble Kites|Old Brewery\nSister Volcano|Docklands Arena\nQuiet Riot Club|Cave 21\n"
                "Paper Tigers|Velvet Room\nLow Tide|Gasworks"
            ),
            (
                "saw {band} live at {venue} yesterday",
                "{band} played {venue} and I lost my voice",
                "seen live on stage: {band}, {venue}, amazing",
                "went to the show of the band {band} at {venue}",
                "I have now seen {band} at {venue}",
                "{venue} was packed for {band}",
                "got tickets for {band} at {venue} and it was great",
                "an evening with {band} in {venue}",
            ),
            single=(
                "Where did {band} play when I saw them?",
                "Which band did I hear at {venue}?",
            ),
            several=("Which bands have I seen on stage?",),
            at_time=("Which show did I go to in {period}?",),
        ),
        Fact(
            "friend",
            3,
            ("name", "from"),
            _pairs(
                "Jolanda|the pottery class\nMateus|university\nPriya|the climbing hall\nBenedikt|my old flat\nAoife|the choir"
            ),
            (
                "met up with {name} from {from}",
                "{name}, my friend from {from}, came by",
                "had a long call with {name} ({from})",
                "you remember {name} from {from}? she's getting married",
                "coffee with {name}, we know each other from {from}",
                "{name} from {from} says hello",
                "bumped into {name} whom I know from {from}",
                "{name} and I go way back, {from}",
            ),
            single=("How do I know {name}?", "Where did {name} and I meet?"),
        ),
        Fact(
            "car",
            2,
            ("car", "colour"),
            _pairs(
                "Skoda Fabia|red\nFiat Panda|yellow\nVolvo estate|grey\nRenault Zoe|blue"
            ),
            (
                "sold the old car, I have a {colour} {car} now",
                "my car is a {car} now, {colour}",
                "the {colour} {car} is mine",
                "my new car: {car}, {colour}",
                "I own the {car} in {colour} at last",
                "traded in for a {colour} {car}",
                ("What are you driving?", "a {colour} {car}"),
                "driving home in my {colour} {car}",
            ),
            newest=("What car do I have?", "Which vehicle do I own at present?"),
        ),
        Fact(
            "course",
            3,
            ("subject", "school"),
            _pairs(
                "woodturning|the Makers' Guild\nArabic|City College\nbookkeeping|an evening school\nfencing|Turner's Academy\nbeekeeping|the allotment society"
            ),
            (
                "I took a course in {subject} at {school}",
                "{subject} course at {school} began",
                "I start learning {subject} with {school}",
                "tonight was {subject} at {school}",
                "my {subject} teacher at {school} is strict",
                "taking up {subject}, {school} offers it",
                "doing a course in {subject} at {school}",
                "{school} has me studying {subject}",
            ),
            single=(
                "Where am I learning {subject}?",
                "Who offers my {subject} lessons?",
            ),
            several=("What courses did I take?",),
            at_time=("What did I start learning in {period}?",),
        ),
        Fact(
            "repair",
            3,
            ("object", "who"),
            _pairs(
                "boiler|Hugo & Sons\ndishwasher|Mr Adeyemi\ngarage door|Fixly\nroof|Tallis Roofing\nbalcony rail|Ms Novak"
            ),
            (
                "{who} came to fix the {object}",
                "the {object} broke, {who} took care of it",
                "{who} mended our {object} finally",
                "had {who} over for the {object}",
                "{object} works again thanks to {who}",
                "called {who} because of the {object}",
                "{who} charged a fortune for the {object}",
                "three hours later {who} is done with the {object}",
            ),
            single=(
                "Who repaired the {object}?",
                "Whom did I call about the {object}?",
            ),
        ),
        Fact(
            "team",
            2,
            ("team", "position"),
            _pairs(
                "Riverside Rovers|goalkeeper\nHill Street FC|left back\nNorth End United|striker\nHarriers|midfielder"
            ),
            (
                "I play {position} for {team} now",
                "{team} is my team, as {position}",
                "joined the team {team}, {position}",
                "new season, new club: {team}, {position}",
                "they put me in as {position} at {team}",
                "my debut for {team} as {position}",
                ("Still playing football?", "{position} at {team}"),
                "training with {team}, {position} as always",
            ),
            newest=("Which club do I play for now?", "What is my present team?"),
        ),
        Fact(
            "recipe",
            3,
            ("dish", "secret"),
            _pairs(
                "goulash|smoked paprika\nbanana bread|cardamom\nchili|dark chocolate\nlentil soup|lemon peel\nragu|anchovies"
            ),
            (
                "my {dish} gets better with {secret}",
                "made {dish}, the trick is {secret}",
                "put {secret} in the {dish}, trust me",
                "{dish} night! added {secret}",
                "grandma's {dish} has {secret} in it",
                "the secret of my {dish} is {secret}",
                "cooked {dish} with {secret}, everyone loved it",
                "never again {dish} without {secret}",
            ),
            single=(
                "What do I put into my {dish}?",
                "What is the special ingredient of my {dish}?",
            ),
        ),
        Fact(
            "deadline",
            3,
            ("project", "client"),
            _pairs(
                "brochure|Ostrander\nwebsite|the museum\naudit|Fairfax Bank\ncatalogue|Weber & Ruhl\nmural|the town hall"
            ),
            (
                "handed in the {project} for {client}",
                "my client {client} wants the {project} by Friday",
                "working on the {project} for {client}",
                "the {project} for {client} is eating my week",
                "{client}, my client, loved the {project}",
                "kick-off with {client} about the {project}",
                "invoice sent to {client} for the {project}",
                "still stuck on {client}'s {project}",
            ),
            single=(
                "For whom did I do the {project}?",
                "What am I making for {client}?",
            ),
            several=("Which clients did I have?",),
        ),
        Fact(
            "plant",
            2,
            ("plant", "spot"),
            _pairs(
                "lemon tree|south window\nmonstera|hallway\nwisteria|pergola\nolive tree|terrace"
            ),
            (
                "the {plant} now stands at the {spot}",
                "put a {plant} at the {spot}",
                "got a {plant} for the {spot}",
                "{spot} looks great with the {plant}",
                "my {plant} is happy at the {spot}",
                "moved the {plant} to the {spot}",
                "planted a {plant} by the {spot}",
                "there's a {plant} at our {spot} now",
            ),
            single=("Where is my {plant}?",),
        ),
    ),
    chatter=_lines("""
        how late is it in {city}
        lol ok
        add {food} to the list
        could you spell '{adj}'
        next door they are renovating, so loud
        someday I want to see {city}
        convert {amount} miles to km
        bus was cancelled once more
        any idea what goes with {food}
        a mate of mine plays in a band, they are awful
        is it cold in {city} right now?
        make this sound more {adj}
        I'm a bit {adj} this morning
        scrap that
        did they announce the date {when}?
        what's {amount} percent of 300
        lunch {when} was rubbish
        give me a fun fact on {food}
        the guy downstairs fixes cars on sundays
        cheers
        meaning of 'serendipity'?
        shorten the text below
        the teacher was rather {adj}
        {city} seems overrated
        I need a nap
        no signal on the train {when}
        anything good at the cinema {when}
        draft a reply to the council about {food} stalls
        evening!
        what is {amount} times 12
    """),
    answers=_lines("""
        Of course.
        In {city} it is late already.
        Added {food}.
        Gladly!
        I would say {adj}.
        That makes sense.
        {amount} it is.
        Any time.
    """),
    replies=(
        "Lovely, thank you for sharing.",
        "Sounds great.",
        "Got it.",
        "I see, noted.",
    ),
    fillers={
        "city": ("Sydney", "Toronto", "Seoul", "Dubai", "Austin"),
        "food": ("rice", "plums", "butter", "radishes", "cheese"),
        "adj": ("formal", "sleepy", "brisk", "gloomy", "polite"),
        "when": (
            "on Wednesday",
            "on Thursday",
            "on Saturday",
            "tonight",
            "this evening",
        ),
        "amount": ("5", "18", "33", "60", "75"),
    },
    never=(
        "What is my salary?",
        "When do I renew my visa?",
        "Which dentist do I see?",
        "What is my wifi password?",
        "Who is my landlord?",
        "Which languages did my father speak?",
        "What is my favourite opera?",
        "When did I get vaccinated?",
        "What is my locker code?",
        "Which charity do I support?",
        "What is my twin's name?",
        "Where is my grave plot?",
    ),
)

PARTS = {"development": _DEVELOPMENT, "held": _HELD}
