"""Statements as sentences about the user, such that reading the sentence gives the statement back."""

from workers.statements.grammar import Grammar, load_grammar
from workers.statements.statement import Statement
from workers.statements.taxonomy import Taxonomy


def statement_text(statement: Statement) -> str:
    """Return *statement* as a sentence in the third person: "User likes omelettes until 2025-12-05"."""
    grammar = load_grammar()
    if statement.kind == "clears":
        return _cleared(statement, grammar)
    told = _told(statement, grammar)
    if statement.kind == "tells":
        return told + _until(statement, grammar)
    begin, owned = grammar.texts["retracts"], told.partition(" ")[0].endswith("'s")
    return grammar.texts["retracts_owned"] + told if owned else begin + told.partition(" ")[2]


def _told(statement: Statement, grammar: Grammar) -> str:
    relation = grammar.relations[statement.relation or "other"]
    text = relation.text
    if relation.adjective and Taxonomy.load().is_headed(statement.object, relation.adjective):
        text = grammar.texts["adjective"]
    elif text == grammar.relations["other"].text and not grammar.is_told(statement.object):
        text = grammar.texts["owned"]
    return text.format(object=statement.object)


def _until(statement: Statement, grammar: Grammar) -> str:
    if statement.expiry is not None:
        return grammar.texts["until"].format(date=statement.expiry.isoformat())
    return grammar.texts.get(statement.durability, "")


def _cleared(statement: Statement, grammar: Grammar) -> str:
    place = grammar.relations[statement.relation].place if statement.relation else ""
    if place:
        name = "clears_from" if statement.object else "clears_place"
    elif statement.object:
        name = "clears"
    else:
        name = "clears_tag" if statement.tags else "clears_all"
    return grammar.texts[name].format(object=statement.object, place=place, tag=next(iter(statement.tags), ""))
