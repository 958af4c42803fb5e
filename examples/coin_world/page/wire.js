// What the page hears from the world and tells it: pictures as they come, one at a time, and when none come any more.

// Milliseconds without a sign from a server that sends one every five seconds.
const SILENT_MS = 15_000;
// Milliseconds between attempts when the browser itself has given up.
const AGAIN_MS = 1_000;

/**
 * Call `onPicture(picture, isAnother)` with every picture, and `onState("live" | "lost")` with every sign of life or death.
 * `isAnother` says that it is of another world than the picture before. Never ends.
 */
export function listen(onPicture, onState) {
  let source = null;
  let world = null;
  let isAnother = false;
  let watch = 0;

  const lost = () => {
    onState("lost");
    source.close();
    clearTimeout(watch);
    watch = setTimeout(open, AGAIN_MS);
  };
  const alive = () => {
    clearTimeout(watch);
    watch = setTimeout(lost, SILENT_MS);
    onState("live");
  };

  function open() {
    source = new EventSource("events");
    source.addEventListener("picture", (event) => {
      alive();
      onPicture(JSON.parse(event.data), isAnother);
      isAnother = false;
    });
    source.addEventListener("world", ({ data }) => {
      isAnother = world !== null && world !== data;
      world = data;
    });
    source.addEventListener("beat", alive);
    source.addEventListener("error", lost);
    clearTimeout(watch);
    watch = setTimeout(lost, SILENT_MS);
  }

  open();
}

/** Tell the world to `play`, `pause` or make a `step`, at this pace in milliseconds; false when it did not hear. */
export async function order(action, intervalMs) {
  try {
    const reply = await fetch("control", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ action, interval_ms: intervalMs }),
    });
    return reply.ok;
  } catch {
    return false;
  }
}

/** Return what an agent was shown and decided when it was last asked, null when that is not known. */
export async function told(name) {
  try {
    const reply = await fetch(`agents/${encodeURIComponent(name)}`);
    return reply.ok ? await reply.json() : null;
  } catch {
    return null;
  }
}
