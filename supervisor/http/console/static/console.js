// What pages do beside links and forms; every page reads, and every form posts, without it.
"use strict";

// One box that chooses all boxes of its form.
document.addEventListener("change", (event) => {
  const all = event.target;
  const name = all.dataset && all.dataset.all;
  if (!name || !all.form) return;
  for (const box of all.form.querySelectorAll(`input[type=checkbox][name="${name}"]`)) {
    box.checked = all.checked;
  }
});

function showScripted() {
  for (const box of document.querySelectorAll("input[data-all][hidden]")) {
    box.hidden = false;
  }
}
document.addEventListener("DOMContentLoaded", showScripted);
document.addEventListener("htmx:after:swap", showScripted);

// Output of a run as it comes. However much there was, the page holds the last of it alone.
const MOST_PIECES = 400;
const MOST_CHARACTERS = 100000;

function followOutput(section) {
  const text = section.querySelector("[data-output-text]");
  // What is not seen, or turns the order of writing, is spelled out, as on every page.
  const marks = new RegExp(section.dataset.marks, "gu");
  const shown = (words) => words.replace(marks, (one) => `⟨U+${one.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);
  const state = section.querySelector("[data-output-state]");
  const source = new EventSource(section.dataset.output);
  // Pieces wait for the next frame, which shows them together; of a page that nobody sees the last ones wait.
  let pieces = [];
  let frame = 0;
  let length = 0;
  let dropped = false;
  const show = () => { section.hidden = false; };
  const say = (words) => { state.textContent = shown(dropped ? `${words} The beginning is left out here.` : words); show(); };
  const clear = () => { pieces = []; text.replaceChildren(); length = 0; dropped = false; };
  const append = (words, isMark) => {
    pieces.push({ words: shown(words), isMark });
    if (pieces.length > MOST_PIECES) { pieces.shift(); dropped = true; }
    frame = frame || requestAnimationFrame(paint);
  };
  const paint = () => {
    frame = 0;
    show();
    const isAtEnd = text.scrollTop + text.clientHeight >= text.scrollHeight - 24;
    text.append(...pieces.map(draw));
    length += pieces.reduce((sum, piece) => sum + piece.words.length, 0);
    pieces = [];
    while (text.childNodes.length > MOST_PIECES || (length > MOST_CHARACTERS && text.childNodes.length > 1)) {
      length -= text.firstChild.textContent.length;
      text.firstChild.remove();
      dropped = true;
    }
    if (isAtEnd) text.scrollTop = text.scrollHeight;
  };
  const draw = (piece) => {
    if (!piece.isMark) return document.createTextNode(piece.words);
    const line = document.createElement("span");
    line.className = "mark";
    line.textContent = piece.words;
    return line;
  };
  const mark = (words) => append(words, true);
  const on = (name, act) => source.addEventListener(name, (event) => act(JSON.parse(event.data)));
  on("text", (data) => append(data.text.slice(-MOST_CHARACTERS), false));
  on("value", (data) => mark(`${data.kind}: ${JSON.stringify(data.value).slice(0, 2000)}`));
  on("restarted", (data) => { clear(); mark(data.waited ? "It goes on after a wait." : "A run broke off; a new one begins."); });
  on("gap", () => mark("Some output was lost."));
  on("waiting", (data) => say(`It waits for ${data.text}.`));
  on("question", (data) => say(`It asks: ${data.question}`));
  on("progress", (data) => say(`${data.fraction === null ? "" : `${Math.round(100 * data.fraction)} % `}${data.text}`.trim() || "It runs."));
  on("expired", () => mark("The rest of the output is not kept any more."));
  // A stream that ended is opened again; what is refused then was of a session that is over.
  source.addEventListener("error", () => { if (source.readyState === EventSource.CLOSED) say("It is not followed any more: load the page again."); });
  on("done", (data) => { source.close(); if (frame) paint(); if (!section.hidden) say(`It has ended: ${data.status}.`); });
}

document.addEventListener("DOMContentLoaded", () => {
  for (const section of document.querySelectorAll("[data-output]")) followOutput(section);
});
