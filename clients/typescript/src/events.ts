/** One event of a stream of server-sent events. Source: the HTML standard, 9.2. */
export type ServerSentEvent = { id: string; type: string; data: string };

/** The events of a stream, as they come; one that the stream's end cuts is none. */
export async function* serverSentEvents(stream: ReadableStream<Uint8Array>): AsyncGenerator<ServerSentEvent> {
  let rest = '';
  let lines: string[] = [];
  for await (const text of textOf(stream)) {
    const parts = (rest + text).split(/\r\n|\n|\r(?!$)/);
    rest = parts.pop() ?? '';
    for (const line of parts) {
      if (line !== '') {
        lines.push(line);
        continue;
      }
      const event = eventOf(lines);
      lines = [];
      if (event) yield event;
    }
  }
}

async function* textOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  const reader = stream.getReader();
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      yield decoder.decode(value, { stream: true });
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

function eventOf(lines: string[]): ServerSentEvent | undefined {
  const event = { id: '', type: 'message' };
  const data: string[] = [];
  for (const line of lines) {
    const [, name = '', value = ''] = /^([^:]*):? ?(.*)$/s.exec(line) ?? [];
    if (name === 'data') data.push(value);
    else if (name === 'event') event.type = value;
    else if (name === 'id') event.id = value;
  }
  return data.length > 0 ? { ...event, data: data.join('\n') } : undefined;
}
