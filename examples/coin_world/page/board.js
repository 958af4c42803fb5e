// The world seen from above: ground, coins, and a token for each agent, which is a button.

import { coins, deed, looks, make, place, wealth } from "./words.js";
import { showBubbles } from "./bubbles.js";

const SVG = "http://www.w3.org/2000/svg";
// Places that the chosen agent's trail goes back.
const TRAIL = 24;
// Fields between two tokens that do not touch, how far one steps aside for that, and how small it may become.
const APART = 0.88;
const ASIDE = 0.55;
const SMALLEST = 0.6;
// Rounds of stepping aside, each of which all pairs take: after these, crowds hardly move any more.
const ROUNDS = 8;

const board = document.getElementById("board");
const ground = document.getElementById("ground");
const tokens = document.getElementById("tokens");

const byName = new Map();
const trails = new Map();
let size = null;
let spread = new Map();
let cell = 0;
let latest = null;
let chosenName = null;
let focused = null;

/** Draw a picture; agents keep their tokens, so that nobody loses the focus. */
export function drawBoard(picture, chosen) {
  chosenName = chosen;
  if (!size || size.x !== picture.size.x || size.z !== picture.size.z) layGround(picture.size);
  drawCoins(picture.coins);
  const names = picture.agents.map((agent) => agent.name);
  if (names.length !== byName.size || names.some((name) => !byName.has(name))) seat(names);
  spread = spreadOf(picture.agents);
  for (const agent of picture.agents) drawToken(agent, spread.get(agent.name));
  drawPaths(picture.agents.find((agent) => agent.name === chosen));
  latest = picture;
  bubble();
}

/** Forget where everybody was: it is another world, or the same one from its beginning. */
export function forgetTrails() {
  trails.clear();
}

/** Call `onChoice(name)` when an agent is chosen on the board. */
export function onBoardChoice(onChoice) {
  tokens.addEventListener("click", (event) => {
    const token = event.target.closest("button");
    if (token) onChoice(token.agentName);
  });
  tokens.addEventListener("focusin", (event) => rove(event.target.closest("button")));
  tokens.addEventListener("keydown", (event) => {
    const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    const here = event.target.closest("button");
    if (!way || !here || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    nextToken(here, way)?.focus();
  });
}

function layGround(newSize) {
  size = newSize;
  board.style.setProperty("--columns", size.x + 1);
  board.style.setProperty("--rows", size.z + 1);
  ground.setAttribute("viewBox", `0 0 ${size.x + 1} ${size.z + 1}`);
  ground.replaceChildren();
  for (let x = 0; x <= size.x; x += 1) {
    for (let z = 0; z <= size.z; z += 1) {
      if ((x + z) % 2) ground.append(shape("rect", { class: "field", x, y: size.z - z, width: 1, height: 1 }));
    }
  }
  const every = size.x > 40 ? 10 : 5;
  for (let x = 0; x <= size.x; x += every) ground.append(mark(x, x + 0.5, size.z + 0.97));
  for (let z = every; z <= size.z; z += every) ground.append(mark(z, 0.06, size.z - z + 0.28, "start"));
  for (const id of ["paths", "gold"]) ground.append(shape("g", { id }));
  measure();
}

function mark(number, x, y, anchor = "middle") {
  const text = shape("text", { class: "mark", x, y, "text-anchor": anchor });
  text.textContent = number;
  return text;
}

function shape(tag, attributes) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

const left = (x) => x + 0.5;
const top = (z) => size.z - z + 0.5;

function drawCoins(list) {
  const gold = document.getElementById("gold");
  const there = new Map([...gold.children].filter((coin) => !coin.isTaken).map((coin) => [coin.id, coin]));
  for (const coin of list) {
    const id = `coin ${coin.x} ${coin.z}`;
    if (!there.delete(id)) gold.append(coinAt(id, coin));
  }
  for (const coin of there.values()) {
    coin.isTaken = true;
    coin.classList.add("taken");
    setTimeout(() => coin.remove(), 600);
  }
}

function coinAt(id, { x, z }) {
  const coin = shape("g", { id, class: "coin", transform: `translate(${left(x)} ${top(z)})` });
  const inner = shape("g", {});
  inner.append(shape("circle", { class: "edge", r: 0.25, cy: 0.035 }), shape("circle", { class: "face", r: 0.235 }));
  inner.append(shape("circle", { class: "rim", r: 0.155 }));
  coin.append(inner);
  return coin;
}

function seat(names) {
  const keep = document.activeElement?.agentName;
  byName.clear();
  trails.clear();
  tokens.replaceChildren();
  names.forEach((name, index) => {
    const token = make("button", "token");
    token.type = "button";
    token.tabIndex = index === 0 ? 0 : -1;
    token.agentName = name;
    token.style.setProperty("--hue", looks(name).hue);
    token.append(make("span", "sign", looks(name).sign), make("span", "flag", name));
    byName.set(name, token);
    tokens.append(token);
  });
  focused = byName.get(names[0]) ?? null;
  byName.get(keep)?.focus();
}

function drawToken(agent, { dx, dz, part }) {
  const token = byName.get(agent.name);
  const trail = trails.get(agent.name) ?? [];
  const last = trail.at(-1);
  if (!last || last.x !== agent.x || last.z !== agent.z) trails.set(agent.name, [...trail, agent].slice(-TRAIL));
  token.agent = agent;
  token.style.setProperty("--x", left(agent.x) + dx);
  token.style.setProperty("--y", top(agent.z) + dz);
  token.style.setProperty("--part", part);
  const isChosen = agent.name === chosenName;
  token.classList.toggle("chosen", isChosen);
  token.classList.toggle("late", agent.late);
  token.classList.toggle("west", agent.x < size.x * 0.1);
  token.classList.toggle("east", agent.x > size.x * 0.9);
  token.setAttribute("aria-pressed", String(isChosen));
  const has = wealth(agent);
  token.setAttribute("aria-label", `${agent.name} at ${place(agent)}, ${coins(has)}, ${deed(agent)}`);
}

/** Return how far aside each agent stands, and how large, so that those near one another can all be seen and hit. */
function spreadOf(agents) {
  const spots = agents.map(({ x, z }, index) => ({ x, z, x0: x, z0: z, turn: index * 2.4, part: 1 }));
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const [one, other, dx, dz, far] of pairsNear(spots)) {
      const push = (APART - far) / 2;
      const [wayX, wayZ] = far > 0.01 ? [dx / far, dz / far] : [Math.cos(one.turn), Math.sin(one.turn)];
      shift(one, -wayX * push, -wayZ * push);
      shift(other, wayX * push, wayZ * push);
    }
  }
  for (const [one, other, , , far] of pairsNear(spots)) {
    one.part = Math.min(one.part, Math.max(far / APART, SMALLEST));
    other.part = Math.min(other.part, Math.max(far / APART, SMALLEST));
  }
  return new Map(agents.map(({ name, x, z }, index) => {
    const spot = spots[index];
    return [name, { dx: spot.x - x, dz: z - spot.z, part: spot.part }];
  }));
}

function* pairsNear(spots) {
  for (let first = 0; first < spots.length; first += 1) {
    for (let second = first + 1; second < spots.length; second += 1) {
      const dx = spots[second].x - spots[first].x;
      const dz = spots[second].z - spots[first].z;
      const far = Math.abs(dx) < APART && Math.abs(dz) < APART ? Math.hypot(dx, dz) : APART;
      if (far < APART) yield [spots[first], spots[second], dx, dz, far];
    }
  }
}

/** Move a spot, though not far from where its agent is, nor out of the world. */
function shift(spot, dx, dz) {
  const within = (value, home, edge) =>
    Math.min(Math.max(value, home - ASIDE, Math.min(home, 0)), home + ASIDE, Math.max(home, edge));
  spot.x = within(spot.x + dx, spot.x0, size.x);
  spot.z = within(spot.z + dz, spot.z0, size.z);
}

function drawPaths(agent) {
  const paths = document.getElementById("paths");
  paths.replaceChildren();
  if (!agent) return;
  const points = (trails.get(agent.name) ?? []).map((at) => `${left(at.x)},${top(at.z)}`).join(" ");
  paths.style.setProperty("--hue", looks(agent.name).hue);
  paths.append(shape("polyline", { class: "trail", points }));
  const other = agent.to ? byName.get(agent.to)?.agent : null;
  if (other) {
    const ends = { x1: left(agent.x), y1: top(agent.z), x2: left(other.x), y2: top(other.z) };
    paths.append(shape("line", { class: "call", ...ends }));
  }
}

/** Return the token that is nearest in a direction; one that lies aside counts as farther away. */
function nextToken(here, [wayX, wayY]) {
  const from = here.agent;
  let best = null;
  for (const token of byName.values()) {
    const dx = token.agent.x - from.x;
    const dy = from.z - token.agent.z;
    const along = dx * wayX + dy * wayY;
    const aside = Math.abs(dx * wayY) + Math.abs(dy * wayX);
    const isSamePlace = dx === 0 && dy === 0;
    const isNext = isSamePlace ? comesAfter(token, here, wayX + wayY) : along > 0;
    const far = isSamePlace ? 0 : along + 2 * aside;
    if (token !== here && isNext && (!best || far < best.far)) best = { token, far };
  }
  return best?.token;
}

/** Tokens at one place are gone through in their order, and left at its end. */
function comesAfter(token, here, way) {
  const order = [...byName.values()];
  return (order.indexOf(token) - order.indexOf(here)) * way > 0;
}

function rove(token) {
  if (!token || token === focused) return;
  if (focused) focused.tabIndex = -1;
  token.tabIndex = 0;
  focused = token;
}

function measure() {
  if (!size) return;
  const width = board.clientWidth;
  cell = width / (size.x + 1);
  board.style.setProperty("--cell", `${cell}px`);
  board.classList.toggle("fine", cell < 22);
  board.classList.toggle("tiny", cell < 14);
  if (latest) bubble();
}

function bubble() {
  const at = (agent) => {
    const { dx, dz } = spread.get(agent.name);
    return { x: (left(agent.x) + dx) * cell, y: (top(agent.z) + dz) * cell, hue: looks(agent.name).hue };
  };
  showBubbles(latest, chosenName, at, { cell, width: board.clientWidth, height: board.clientHeight });
  for (const agent of latest.agents) byName.get(agent.name).classList.toggle("speaking", Boolean(agent.said));
}

new ResizeObserver(measure).observe(board);
