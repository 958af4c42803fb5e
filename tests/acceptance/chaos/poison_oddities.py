"""What poison is made of: values, pieces of JSON, headers, names and sentences that nobody should send."""

from typing import Any

_NUMBERS: tuple[Any, ...] = (
    -1,
    0,
    1.5,
    10**30,
    -(10**30),
    2**63,
    2**64,
    1e308,
    -0.0,
    1e18,
    -1e18,
    253402300800,
)
_WORDS: tuple[Any, ...] = (
    "",
    " ",
    "x" * 65,
    "a.b",
    "a b",
    "*",
    ">",
    "..",
    "NaN",
    "Infinity",
    "-1",
    "1e999",
)
_LETTERS: tuple[Any, ...] = (
    "\x00",
    "\ud800",
    "\udcff\ud800",
    "\u202e",
    "ä" * 40,
    "٣",
    "²",
    "%s%n",
    "${x}",
    "{}",
)
_AMOUNTS: tuple[Any, ...] = (
    "0x10",
    "1_000",
    "ninety " * 200,
    "9" * 5000,
    "-" * 300,
    "1" + ",000" * 400,
    "(" * 500,
)
_SHAPES: tuple[Any, ...] = (
    None,
    True,
    False,
    [],
    {},
    [[]],
    [None],
    {"": ""},
    [1, "2", {}],
)
_UNITS: tuple[Any, ...] = (
    {"value": 1},
    {"value": {"value": 1}},
    {"value": 1, "unit": "\x00"},
)
_TIMES: tuple[Any, ...] = (
    "9999-12-31T23:59:59Z",
    "0001-01-01T00:00:00+23:59",
    "9999-12-31T23:59:59-23:59",
    "now",
)

#: What may stand where something else is expected.
ODD_VALUES = (*_NUMBERS, *_WORDS, *_LETTERS, *_AMOUNTS, *_SHAPES, *_UNITS, *_TIMES)

_TEXT_NUMBERS = (
    b"NaN",
    b"Infinity",
    b"-Infinity",
    b"1e999",
    b"-1e999",
    b"1e-999",
    b"00",
    b"+1",
    b".5",
    b"1.",
    b"tru",
)
_TEXT_DIGITS = (
    b"9" * 4_400,
    b"-" + b"9" * 20_000,
    b"0." + b"1" * 20_000,
    b"1e" + b"9" * 400,
)
_TEXT_ESCAPES = (
    b'"\\ud800"',
    b'"\\udc00\\ud800"',
    b'"\\u0000"',
    b'"\\x"',
    b'"\\u12"',
    b"'x'",
)
_TEXT_BYTES = (b'"\xff\xfe"', b'"\xc0\x80"', b'"\xed\xa0\x80"', b'"\xf5\x80\x80\x80"')
_TEXT_NESTS = (
    b"[" * 100_000,
    b"[" * 200 + b"]" * 200,
    b'{"a":' * 50_000,
    b'{"a":' * 150 + b"1" + b"}" * 150,
)

#: Pieces of JSON that `json.dumps` would not write.
ODD_TEXTS = (*_TEXT_NUMBERS, *_TEXT_DIGITS, *_TEXT_ESCAPES, *_TEXT_BYTES, *_TEXT_NESTS)

_OTHER_JSON = (
    b"",
    b" ",
    b"\n",
    b"null",
    b"true",
    b"0",
    b"-1",
    b'""',
    b"[]",
    b"{}",
    b"[{}]",
    b'[[["x"]]]',
)
_OTHER_BYTES = (
    b"\xef\xbb\xbf{}",
    b"\x00",
    b"\xff" * 64,
    b"\x1f\x8b\x08\x00",
    b"<xml/>",
    b"{" * 9_000,
)
_OTHER_PROTOCOLS = (b"+ACK", b"-NAK", b"+TERM", b"PUB x 1\r\nx\r\n")

#: Bodies that have nothing to do with what is expected.
NO_MESSAGES = (*_OTHER_JSON, *_OTHER_BYTES, *_OTHER_PROTOCOLS)

#: What may stand as `schema_version`.
VERSIONS: tuple[Any, ...] = (
    0,
    -1,
    2,
    99,
    10**12,
    10**30,
    1.5,
    "1",
    "2.0",
    None,
    True,
    [1],
    {},
)

_TOKEN_BYTES = (
    b"\xff\xfe",
    b"\xc0\x80",
    b"\xed\xa0\x80",
    b"\x00",
    b"\x01\x02",
    b"\xe2\x80\xae",
    b"\xf0\x9f\x92\xa9",
)
_TOKEN_SIGNS = (
    b"",
    b".",
    b"..",
    b"*",
    b">",
    b"%s",
    b"{}",
    b"$",
    b"\\",
    b'"',
    b"-",
    b"'",
)
_TOKEN_LENGTHS = (b"a" * 700, b"a." * 300 + b"a", b"\xc3\xa4" * 300)

#: The end of a subject. No spaces and line ends, which would end it for the server; no DEL, under which nats-server
#: 2.15 keeps what it never finds again.
ODD_TOKENS = (*_TOKEN_BYTES, *_TOKEN_SIGNS, *_TOKEN_LENGTHS)

_COUNTS = (
    b"-1",
    b"abc",
    b"1000000000",
    b"999999999",
    b"2",
    b"0",
    b"",
    b"\xc2\xb2",
    b"1e3",
    b"9" * 5_000,
    b"4",
)
_COUNTERS = (b"Tasklore-Generation", b"Tasklore-Attempt")
_COUNTED = tuple(b"%b: %b" % (name, count) for name in _COUNTERS for count in _COUNTS)
_MISSPELT = (
    b"Tasklore-Generation: 2\r\nTasklore-Generation: 3",
    b"tasklore-generation: 7",
    b"Tasklore-Generation : 5",
)
_TRACES = (
    b"traceparent: 00-" + b"0" * 32 + b"-" + b"0" * 16 + b"-01",
    b"traceparent: \xff\xfe",
    b"traceparent: x",
)
_SERVERS = (
    b"Status: 409",
    b"Status: 100",
    b"Description: Consumer Deleted",
    b"Nats-TTL: never",
    b"Nats-Stream: TASKS",
)
_FRAMES = (
    b"content-type: text/plain",
    b"content-type: a/b",
    b"correlation_id: ",
    b"reply_to: tasks.x",
)
_BUCKETS = (b"KV-Operation: DEL", b"KV-Operation: PURGE", b"KV-Operation: \xff")
_BROKEN = (
    b"no colon",
    b": no name",
    b"\xff\xfe: 1",
    b"\x00: \x00",
    b" folded",
    b"X: " + b"y" * 3_000,
)

#: Lines of a header block.
HEADER_LINES = (
    *_COUNTED,
    *_MISSPELT,
    *_TRACES,
    *_SERVERS,
    *_FRAMES,
    *_BUCKETS,
    *_BROKEN,
)

#: First lines of a header block; the odd ones are the server's own.
VERSION_LINES = (
    *[b"NATS/1.0"] * 3,
    b"NATS/1.0 503",
    b"NATS/1.0 100 FlowControl",
    b"NATS/1.0 409 Leader Changed",
)

_ASKED = (
    "limit 50k, spent 42,000",
    "swallow 5",
    "bend 5",
    "take the same again",
    "what can you do?",
    "?",
    "   ",
)
_ASKED_DIGITS = (
    "limit " + "9" * 4_500 + ", spent 1",
    "limit 1" + ",000" * 900,
    "5" * 19_000,
    "limit 1.1.1.1",
)
_ASKED_AGAIN = (
    "limit " + "ninety " * 2_000,
    "limit " + "(" * 6_000,
    "limit " + "-" * 6_000 + "5",
    "a " * 9_900,
)
_ASKED_SIGNS = (
    "limit \u0665\u0660 spent \xb2",
    "limit $€5",
    "swallow \x00\x01",
    "limit\u202e 5 \ufeff6",
    "\ud83d" * 3,
)
_ASKED_MUCH = (
    "limit 5 USD spent 5 EUR history " + "1, " * 6_000,
    "limit NaN spent Infinity",
    "bend " + "a" * 15_000,
)

#: What a person may say.
SENTENCES = (*_ASKED, *_ASKED_DIGITS, *_ASKED_AGAIN, *_ASKED_SIGNS, *_ASKED_MUCH)
