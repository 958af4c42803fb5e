// Sentences and signs for what the world shows. Whatever agents wrote stays text: nothing here makes HTML.

/** Make an element with a class and text. */
export function make(tag, className = "", text = "") {
  const element = document.createElement(tag);
  element.className = className;
  element.textContent = text;
  return element;
}

/** Set the text of an element, and touch it only if that changes something. */
export function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Write a number as people do: at most two decimals, no trailing zeros. */
export function short(number) {
  return String(Math.round(number * 100) / 100);
}

/** Write a place. */
export function place(at) {
  return `(${short(at.x)}, ${short(at.z)})`;
}

/** Return "1 coin", "2 coins". */
export function coins(count) {
  return `${count} ${count === 1 ? "coin" : "coins"}`;
}

/** How many things an agent has. */
export function wealth(agent) {
  return Object.values(agent.collected).reduce((sum, count) => sum + count, 0);
}

/** Tell in a few words what an agent did in the last step. */
export function deed(agent) {
  if (agent.late) return "was not heard of in time";
  if (agent.refused) return `wanted to ${agent.action}, but ${agent.refused}`;
  const at = agent.target && agent.target.x !== undefined ? ` ${place(agent.target)}` : "";
  switch (agent.action) {
    case "move":
      return `walked to${at}`;
    case "collect":
      return `took the coin at${at}`;
    case "text":
      return `texted ${agent.to}`;
    case "wait":
      return "waited";
    default:
      return `${agent.action}${at}`;
  }
}

/** Tell the same where there is little room. */
export function brief(agent) {
  if (agent.late) return "late";
  const near = (number) => Math.round(number * 10) / 10;
  const at = agent.target && agent.target.x !== undefined ? `(${near(agent.target.x)}, ${near(agent.target.z)})` : "";
  const words = { move: `to ${at}`, collect: "takes a coin", text: `texts ${agent.to}`, wait: "waits" };
  const word = Object.hasOwn(words, agent.action) ? words[agent.action] : agent.action;
  return agent.refused ? `${word}, in vain` : word;
}

// Turn of the colour wheel from one agent to the next: neighbours in the list never look alike.
const TURN = 137.508;
const known = new Map();

/** Give each of these agents a colour and a sign; they keep them until others are met. */
export function meet(names) {
  const taken = new Set();
  known.clear();
  names.forEach((name, index) => known.set(name, { hue: (index * TURN + 25) % 360, sign: sign(name, taken) }));
}

/** Return the colour of an agent as a turn of the wheel, and the two or three signs it is known by. */
export function looks(name) {
  return known.get(name) ?? { hue: 0, sign: "?" };
}

function sign(name, taken) {
  const letters = [...name].filter((one) => /[\p{L}\p{N}]/u.test(one));
  const digits = name.match(/\d{1,3}$/);
  const ideas = digits ? [digits[0]] : [];
  for (let second = 1; second < letters.length; second += 1) ideas.push(letters[0] + letters[second].toLowerCase());
  ideas.push(letters[0] ?? [...name][0] ?? "?");
  const found = ideas.find((idea) => !taken.has(idea)) ?? ideas[0];
  taken.add(found);
  return found;
}
