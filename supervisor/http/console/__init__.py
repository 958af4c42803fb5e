"""The web console: pages that are views of operations, made by the server, and read without a script.

Here belong pages, their templates and the one stylesheet. Not here: a store, a stream or a rule. An operation gets
whatever a page lacks, and so does every other door; a test finds each import that goes further.

A new page is one module, one template, and its line in `PAGES` (`routes.py`):

1. `console/NOUN.py` has an `async def show(visit: Visit) -> Shown` and a `PAGE = Page(path="NOUN", title=...,
   group=..., operation=..., show=show, template="NOUN.html")`. `await visit.call(list_things, form)` runs an
   operation as the person who is signed in, here or at a supervisor; `visit.query` and `visit.path` have the values of
   the address. `visit.may(operation)` says whether they may, and whether it can be run from here: a page shows no
   button of another operation. A page without a `group` is reached from another one (`path="NOUN/{name}"`). `count=` is
   a number in the navigation.
2. `templates/NOUN.html` extends `base.html` and fills its block `main`, with one `h1`. `parts.html` has the parts that
   pages share (`form_start`, `live`, `run_link`, `empty`, `meter`), `fields.html` the fields of a task's parameters;
   the filters are `when`, `moment`, `span`, `money`, `number`, `id`, `badge` and `json` (`helpers.py`), an address
   is `address("runs", state="failed")`. Every value is escaped. No `style=`, no `on...=` and no `<script>` in a page:
   the policy of each answer forbids them.
3. A form posts: `{{ form_start("NOUN/verb", form_token) }} ... </form>`, and the page has an `Action(path="NOUN/verb",
   operation=..., run=...)` in its `actions`. `visit.one("field")` and `visit.many("field")` have the fields. `run`
   returns `Said(to=address("NOUN"), text="Done.")`, or `Shown` with the template `confirm.html` where it asks first. A
   link changes nothing.
4. A part that follows events is `<section {{ live("part", url) }}>`: where there is a script it is fetched anew every
   few seconds, and changed in place.

A refusal of an operation becomes a page by itself. `tests/integration/console/` opens every page of the table with
every kind of key; a new page needs its own tests there, of its forms and of all words of others that it shows.
"""
