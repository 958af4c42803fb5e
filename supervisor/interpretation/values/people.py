"""Words for people: who they are to the speaker, how many one word stands for, and what stands around them."""

from supervisor.interpretation.words import word_set


def _forms(singulars: str, irregular: str = "") -> dict[str, bool]:
    """Return the words of *singulars* and their plurals, and those of *irregular* as plurals; True marks a plural."""
    found: dict[str, bool] = {}
    for word in singulars.split():
        found[word] = False
        plural = f"{word[:-1]}ies" if word.endswith(("by", "ny", "dy", "ly", "ty", "my")) else f"{word}s"
        found[f"{word}es" if word.endswith(("s", "sh", "ch", "x")) else plural] = True
    return found | dict.fromkeys(irregular.split(), True)


#: Whoever the speaker speaks of as theirs: True for a plural.
RELATED = _forms(
    "husband hubby spouse partner fiance fianc\u00e9 fiancee fianc\u00e9e boyfriend girlfriend bf gf mother mom mum"
    " mommy mummy mama ma father dad daddy papa pa parent son daughter sister brother sibling uncle aunt auntie nephew"
    " niece cousin grandfather grandmother grandpa grandma granddad grandad gran granny nan nana grandparent grandson"
    " granddaughter grandkid stepfather stepmother stepson stepdaughter stepbrother stepsister stepdad stepmom"
    " boss manager supervisor assistant secretary colleague coworker teammate friend buddy pal mate bestie roommate"
    " flatmate housemate classmate neighbor neighbour nanny babysitter newborn kid kiddo baby toddler child relative"
    " wife bro sis missus",
    "wives children babies grandchildren kiddies",
)
#: Anybody else.
ANYONE = _forms(
    "person adult grownup boy girl man woman lady gentleman guy gal guest senior pensioner infant teen teenager"
    " youngster student pupil teacher individual client customer diner visitor attendee participant member employee"
    " worker traveller traveler passenger player tourist pax head soul human others invitee vip vegetarian vegan"
    " pescatarian coeliac celiac eater cover delegate volunteer intern trainee applicant candidate resident citizen"
    " speaker driver gent lad lass bloke chap dude bride groom bridesmaid"
    " doctor nurse lawyer engineer developer manager officer soldier dancer singer musician actor artist cyclist"
    " hiker golfer skier runner swimmer dentist director executive investor journalist architect accountant consultant",
    "people persons ppl men women ladies gentlemen folk folks peeps businessmen businesswomen businesspeople",
)
#: How many one of these words stands for, where it is not one; a plural without a number stands for as many too.
PAIRS = {
    "couple": 2, "couples": 2, "pair": 2, "pairs": 2, "parents": 2, "grandparents": 2, "twins": 2, "newlyweds": 2,
    "triplets": 3, "twosome": 2, "threesome": 3, "foursome": 4,
}  # fmt: skip
#: Of these a plural without a number is so many; of "couples" it is not known.
KNOWN_PLURALS = frozenset({"parents", "grandparents", "twins", "newlyweds", "triplets"})
#: A number before them adds to the speaker: "3 others".
OTHERS = frozenset({"other", "others", "more", "additional", "extra"})
#: Words for all of a party, which may then be told apart ("8 people, 5 adults and 3 kids").
EVERYBODY = word_set("people persons ppl guests pax visitors diners folks individuals")
#: What those do who are counted: "12 attending", "the 8 invited".
COMING = word_set("attending coming invited dining eating joining expected present going showing arriving seated")
#: Of two words, the people that the second one alone does not tell.
PAIRED = frozenset(
    {("better", "half"), ("other", "half"), ("significant", "other"), ("plus", "one"), ("someone", "else")}
    | {("somebody", "else"), ("old", "man"), ("little", "one"), ("loved", "one")}
)
#: What somebody does who comes along: "I'll come with my sister".
COMES = word_set(
    "come comes coming go going be bring bringing dine dining eat eating lunch dinner breakfast brunch attend attending"
    " celebrate celebrating arrive arriving there i'm im visit visiting travel travelling traveling table reservation"
    " booking fly flying stay staying"
)
#: Bodies of people, which a number follows ("a party of six").
BODIES = word_set(
    "party parties group groups family families team teams crew gang class bunch total squad delegation crowd"
)
SELVES = word_set("me myself i")
SELVES_BESIDE = SELVES | word_set("himself herself yourself you him her")
OWNERS = word_set("my our his her their your the")
ARTICLES = word_set("a an one another")
#: Between a number or an owner and the person.
ADJECTIVES = OTHERS | word_set(
    "small little young younger old older elderly elder adult grown big best good close dear new hungry vegetarian"
    " vegan single lone step ex great male female lovely whole invited paying teenage vip special fellow former"
    " very two-year-old"
)
#: Members of a list of people whose number nobody said.
UNCOUNTED = word_set(
    "family kids friends children colleagues coworkers guests people folks others buddies brothers sisters cousins"
    " siblings sons daughters parents grandparents twins relatives team crew pals mates classmates clients them"
    " everybody everyone us babies"
)
