// Reads a stream of server-sent events; each `data` is JSON.

/** Yield the events of `body`, which are typed by the stream that was asked for. */
export async function* readEvents<Event extends { event: string }>(
  body: ReadableStream<Uint8Array>,
): AsyncGenerator<Event> {
  const decoder = new TextDecoder();
  let unread = "";
  for await (const bytes of body) {
    const blocks = (unread + decoder.decode(bytes, { stream: true })).split("\n\n");
    unread = blocks.pop() ?? "";
    for (const block of blocks) {
      const fields = new Map(block.split("\n").map(readField));
      const data = fields.get("data");
      if (data !== undefined) {
        yield { id: fields.get("id"), event: fields.get("event"), data: JSON.parse(data) } as unknown as Event;
      }
    }
  }
}

function readField(line: string): [string, string] {
  const end = line.indexOf(": ");
  return [line.slice(0, end), line.slice(end + 2)];
}
