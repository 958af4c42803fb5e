// Beside the world: who is in it, what they say, and what the chosen one was shown.

import { brief, coins, deed, looks, make, place, wealth, write } from "./words.js";
import { told } from "./wire.js";

// Agents from which on each has one line.
const MANY = 12;
// Entries that the list of what was said keeps.
const KEPT = 200;
// Milliseconds between two announcements of what was said: a voice needs longer than a step.
const VOICE_MS = 4_000;
// Milliseconds in which letters typed one after the other are one word to look for.
const WORD_MS = 700;

const list = document.getElementById("list");
const log = document.getElementById("log");
const heard = document.getElementById("heard");
const by = (id) => document.getElementById(id);

const rows = new Map();
let typed = "";
let typedAt = 0;
let spokenAt = 0;
let asked = null;
let isAsking = false;

/** Draw everybody in a row, always in the same order, so that nobody moves while one looks for them. */
export function drawPeople(picture, chosenName) {
  const names = picture.agents.map((agent) => agent.name);
  if (names.length !== rows.size || names.some((name) => !rows.has(name))) seat(names);
  write(by("count"), String(names.length));
  list.classList.toggle("dense", names.length > MANY);
  const most = Math.max(...picture.agents.map(wealth));
  for (const agent of picture.agents) drawRow(agent, most, agent.name === chosenName);
}

/** Call `onChoice(name)` when an agent is chosen in the list. */
export function onListChoice(onChoice) {
  list.addEventListener("click", (event) => {
    const row = event.target.closest("li");
    if (row) onChoice(row.agentName);
  });
  list.addEventListener("keydown", (event) => {
    const row = event.target.closest("li");
    if (!row || event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key === "Enter" || event.key === " ") onChoice(row.agentName);
    else if (!goTo(event.key, row)) return;
    event.preventDefault();
  });
  list.addEventListener("focusin", (event) => {
    const row = event.target.closest("li");
    for (const other of list.children) other.tabIndex = other === row ? 0 : -1;
  });
}

function goTo(key, row) {
  const all = [...list.children];
  const at = all.indexOf(row);
  const ways = { ArrowDown: at + 1, ArrowRight: at + 1, ArrowUp: at - 1, ArrowLeft: at - 1, Home: 0, End: all.length - 1 };
  const next = key in ways ? all[ways[key]] : byLetters(key, all, at);
  next?.focus();
  return key in ways || Boolean(next);
}

function byLetters(key, all, at) {
  if ([...key].length !== 1) return null;
  const now = performance.now();
  typed = now - typedAt < WORD_MS ? typed + key.toLowerCase() : key.toLowerCase();
  typedAt = now;
  const from = typed.length === 1 ? at + 1 : at;
  const turned = [...all.slice(from), ...all.slice(0, from)];
  return turned.find((row) => row.agentName.toLowerCase().startsWith(typed));
}

function seat(names) {
  rows.clear();
  list.replaceChildren();
  names.forEach((name, index) => {
    const row = make("li");
    row.setAttribute("role", "option");
    row.tabIndex = index === 0 ? 0 : -1;
    row.agentName = name;
    const text = make("span", "who");
    text.append(make("b", "", name), make("span", "quiet"));
    row.append(chip(name), text, make("span", "wealth"));
    rows.set(name, row);
    list.append(row);
  });
}

function chip(name) {
  const { hue, sign } = looks(name);
  const element = make("span", "chip", sign);
  element.style.setProperty("--hue", hue);
  element.setAttribute("aria-hidden", "true");
  return element;
}

function drawRow(agent, most, isChosen) {
  const row = rows.get(agent.name);
  const has = wealth(agent);
  row.setAttribute("aria-selected", String(isChosen));
  row.setAttribute("aria-label", `${agent.name}, ${coins(has)}, ${deed(agent)}`);
  row.classList.toggle("late", agent.late);
  write(row.children[1].lastChild, brief(agent));
  write(row.children[2], String(has));
  row.children[2].classList.toggle("most", has > 0 && has === most);
}

/** Add what was said in this step, newest first, and say it to whoever listens instead of looking. */
export function drawTalk(picture) {
  const speaking = picture.agents.filter((agent) => agent.said);
  for (const agent of speaking) {
    const entry = make("li");
    const head = make("p", "quiet");
    head.append(make("b", "", agent.name), ` to ${agent.to ?? "all"}`, make("span", "when", `step ${picture.step}`));
    const line = make("div");
    line.append(head, make("p", "", agent.said));
    entry.append(chip(agent.name), line);
    log.prepend(entry);
  }
  while (log.children.length > KEPT) log.lastChild.remove();
  by("silence").hidden = log.children.length > 0;
  announce(speaking);
}

function announce(speaking) {
  const now = performance.now();
  if (!speaking.length || now - spokenAt < VOICE_MS) return;
  spokenAt = now;
  const [first, ...others] = speaking;
  const more = others.length ? `, and ${others.length} more said something` : "";
  write(heard, `${first.name} to ${first.to ?? "all"}: ${first.said}${more}`);
}

/** Forget what was said: it is another world, or the same one from its beginning. */
export function forgetTalk() {
  log.replaceChildren();
  write(heard, "");
}

/** Show the chosen agent as it stands, and ask for what it was shown; null shows that nobody is chosen. */
export function drawChosen(agent) {
  const title = by("chosen-title");
  by("hint").hidden = Boolean(agent);
  by("facts").hidden = by("close").hidden = !agent;
  asked = agent;
  if (!agent) {
    title.replaceChildren("No agent chosen");
    title.agentName = "";
    return;
  }
  if (title.agentName !== agent.name) {
    title.agentName = agent.name;
    title.replaceChildren(chip(agent.name), agent.name);
    by("prompt").replaceChildren();
    by("prompt").scrollTop = 0;
  }
  write(by("deed"), `${agent.name} ${deed(agent)}. It is at ${place(agent)} and has ${coins(wealth(agent))}.`);
  if (!isAsking) ask();
}

/** Ask until what is shown is of the last picture: one question at a time, however fast pictures come. */
async function ask() {
  isAsking = true;
  let answered = null;
  while (asked && asked !== answered) {
    answered = asked;
    const reply = await told(answered.name);
    if (asked?.name === answered.name && reply) drawTold(reply);
  }
  isAsking = false;
}

function drawTold({ step, prompt, decision, problem }) {
  const reasoning = decision?.reasoning ?? "";
  const decider = decision?.by ? `Decided by ${decision.by}` : "Nothing was decided";
  write(by("why"), problem ? `${decider}: ${problem}` : reasoning ? `${decider}: ${reasoning}` : `${decider}.`);
  write(by("asked"), step ? `in step ${step}` : "");
  const parts = prompt ? partsOf(prompt) : [{ title: "", text: "It has not been asked yet." }];
  const box = by("prompt");
  while (box.children.length > parts.length) box.lastChild.remove();
  parts.forEach(({ title, text }, index) => {
    if (!box.children[index]) box.append(part());
    const [heading, body] = box.children[index].children;
    write(heading, title);
    heading.hidden = !title;
    write(body, text);
  });
}

function part() {
  const element = make("section");
  element.append(make("h4"), make("pre"));
  return element;
}

/** Return a prompt as its sections, the situation before the instructions: it is what changes. */
function partsOf(prompt) {
  const lines = prompt.split("\n");
  const begins = lines.findIndex((line) => line.startsWith("# "));
  const parts = [];
  for (const line of begins < 0 ? [] : lines.slice(begins)) {
    if (line.startsWith("# ")) parts.push({ title: line.slice(2), lines: [] });
    else parts.at(-1).lines.push(line);
  }
  const instructions = lines.slice(0, begins < 0 ? lines.length : begins);
  if (instructions.join("").trim()) parts.push({ title: parts.length ? "Instructions" : "", lines: instructions });
  return parts.map(({ title, lines: text }) => ({ title, text: text.join("\n").trim() || "Nothing." }));
}
