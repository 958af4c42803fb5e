// Speech bubbles: few enough to be read, where they hide least, for as long as it takes to read them.

import { make } from "./words.js";

// Milliseconds for which a bubble stays when its agent says nothing else; a paused world keeps its bubbles.
const STAYS_MS = 4_500;
// Between a bubble and the middle of its agent in fields, and beyond that in pixels; pixels to the edge and to others.
const LIFT = 0.72;
const TAIL = 6;
const MARGIN = 4;
const GAP = 6;
// Bubbles at once, on a board of fewer pixels than NARROW and on others; what has no room stands beside the board.
const NARROW = 480;
const FEW = 3;
const MANY = 6;
// Characters of a bubble: the whole of it stands beside the board.
const LONGEST = 90;

const layer = document.getElementById("bubbles");
const saying = new Map();

/** Show who says something in this picture, and who said something a moment ago; `at(agent)` is where, in pixels. */
export function showBubbles(picture, chosen, at, board) {
  const now = performance.now();
  for (const agent of picture.agents) {
    if (agent.said && picture.step !== saying.get(agent.name)?.step) {
      saying.get(agent.name)?.element.remove();
      saying.set(agent.name, { step: picture.step, until: now + STAYS_MS, element: bubbleOf(agent) });
    }
  }
  const spots = new Map(picture.agents.map((agent) => [agent.name, at(agent)]));
  for (const [name, one] of saying) {
    if (!spots.has(name) || (picture.running && one.until < now)) drop(name);
  }
  const weight = (name) => (name === chosen ? 10 : 1);
  const order = [...saying].sort(([one, a], [two, b]) => weight(two) - weight(one) || b.until - a.until);
  const most = board.width < NARROW ? FEW : MANY;
  const placed = [];
  for (const [name, { element }] of order) {
    const others = [...spots].filter(([other]) => other !== name).map(([other, spot]) => ({ ...spot, weight: weight(other) }));
    const box = placed.length < most ? boxFor(element, spots.get(name), others, placed, board) : null;
    if (box) {
      placed.push(box);
      settle(element, box, spots.get(name));
    }
    element.classList.toggle("shown", Boolean(box));
  }
}

/** Forget what was said: it is another world, or the same one from its beginning. */
export function forgetBubbles() {
  for (const name of [...saying.keys()]) drop(name);
}

function drop(name) {
  saying.get(name)?.element.remove();
  saying.delete(name);
}

function bubbleOf(agent) {
  const element = make("div", "bubble");
  const said = agent.said.length > LONGEST ? `${agent.said.slice(0, LONGEST - 1).trimEnd()}…` : agent.said;
  element.append(make("b", "", agent.to ? `to ${agent.to}` : "to all"), make("span", "", said));
  layer.append(element);
  return element;
}

/** Return where a bubble covers no other one and the fewest agents; null when there is no such place. */
function boxFor(element, { x, y }, others, placed, board) {
  const width = element.offsetWidth;
  const height = element.offsetHeight;
  const boxes = [true, false].flatMap((isAbove) => {
    const top = isAbove ? y - LIFT * board.cell - height - TAIL : y + LIFT * board.cell + TAIL;
    return [0.5, 0.2, 0.8, 0.06, 0.94].map((share) => {
      const left = Math.min(Math.max(x - width * share, MARGIN), board.width - width - MARGIN);
      return { left, top, right: left + width, bottom: top + height, isAbove };
    });
  });
  const cost = (box) => others.reduce((sum, one) => sum + (covers(box, one, board.cell / 3) ? one.weight : 0), 0);
  return boxes
    .filter((box) => box.top >= MARGIN && box.bottom <= board.height - MARGIN)
    .filter((box) => !placed.some((other) => overlap(box, other)))
    .reduce((best, box) => (!best || cost(box) < cost(best) ? box : best), null);
}

function settle(element, box, { x, hue }) {
  // One that was there goes along with its agent; one that is new has nowhere to come from.
  element.classList.toggle("along", element.classList.contains("shown"));
  const tail = Math.min(Math.max(x - box.left, 12), box.right - box.left - 12);
  element.style.transform = `translate(${box.left}px, ${box.top}px)`;
  element.style.setProperty("--tail", `${tail}px`);
  element.style.setProperty("--hue", hue);
  element.classList.toggle("below", !box.isAbove);
}

function overlap(one, other) {
  const isBeside = one.left >= other.right + GAP || other.left >= one.right + GAP;
  return !isBeside && one.top < other.bottom + GAP && other.top < one.bottom + GAP;
}

function covers(box, { x, y }, margin) {
  return x > box.left - margin && x < box.right + margin && y > box.top - margin && y < box.bottom + margin;
}
