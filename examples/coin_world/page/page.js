// The page of a running world: hears pictures, draws them, and tells the world what whoever looks wants.

import { drawBoard, forgetTrails, onBoardChoice } from "./board.js";
import { forgetBubbles } from "./bubbles.js";
import { drawChosen, drawPeople, drawTalk, forgetTalk, onListChoice } from "./people.js";
import { meet, short, write } from "./words.js";
import { listen, order } from "./wire.js";

const by = (id) => document.getElementById(id);
const run = by("run");
const once = by("once");
const pace = by("pace");

let picture = null;
let connection = "opening";
let chosenName = null;
let drawnStep = -1;
let isQueued = false;

function hear(next, isAnother) {
  if (isAnother) {
    forgetTalk();
    forgetBubbles();
    forgetTrails();
    drawnStep = -1;
  }
  if (!picture || !sameNames(picture, next)) meet(next.agents.map((agent) => agent.name));
  if (picture?.interval_ms !== next.interval_ms) choosePace(next.interval_ms);
  picture = next;
  if (next.step !== drawnStep) drawTalk(next);
  drawnStep = next.step;
  // Pictures may come faster than a screen shows them: what is drawn is the last one.
  if (isQueued) return;
  isQueued = true;
  requestAnimationFrame(draw);
}

function draw() {
  isQueued = false;
  drawBoard(picture, chosenName);
  drawPeople(picture, chosenName);
  drawFigures();
  drawChosen(picture.agents.find((agent) => agent.name === chosenName) ?? null);
}

function drawFigures() {
  write(by("step"), String(picture.step));
  write(by("time"), `${short(picture.time)} s`);
  write(by("left"), String(picture.left));
  write(by("took"), picture.step ? `${Math.round(picture.took_ms)} ms` : "–");
  drawStatus();
}

function drawStatus() {
  const isLive = connection === "live" && picture !== null;
  const isOver = isLive && picture.over;
  const late = isLive ? picture.agents.filter((agent) => agent.late).length : 0;
  const state = !isLive ? connection : isOver ? "over" : picture.running ? "running" : "paused";
  const words = {
    opening: "Connecting",
    lost: "Connection lost, trying again",
    over: picture?.left === 0 ? "All coins are taken" : "Over",
    running: "Running",
    paused: "Paused",
  };
  const status = by("status");
  status.dataset.state = late && state === "running" ? "late" : state;
  write(status, words[state === "live" ? "opening" : state] + (late ? `, ${late} not heard of` : ""));
  document.body.classList.toggle("lost", connection === "lost");
  write(run, picture?.running ? "Pause" : "Play");
  for (const button of [run, once]) button.setAttribute("aria-disabled", String(!isLive || isOver));
}

function sameNames(one, other) {
  return one.agents.length === other.agents.length && one.agents.every(({ name }, at) => name === other.agents[at].name);
}

function choosePace(ms) {
  const values = [...pace.options].map((option) => Number(option.value));
  pace.value = String(values.reduce((best, value) => (Math.abs(value - ms) < Math.abs(best - ms) ? value : best)));
}

function choose(name) {
  chosenName = name;
  if (picture) draw();
}

function tell(action, button) {
  if (button?.getAttribute("aria-disabled") === "true") return;
  order(action, Number(pace.value));
}

run.addEventListener("click", () => tell(picture?.running ? "pause" : "play", run));
once.addEventListener("click", () => tell("step", once));
pace.addEventListener("change", () => picture?.running && tell("play"));
by("close").addEventListener("click", () => {
  choose(null);
  by("chosen").focus();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && chosenName !== null) choose(null);
});
onBoardChoice(choose);
onListChoice(choose);
listen(hear, (state) => {
  if (state === connection) return;
  connection = state;
  drawStatus();
});
