/** A message of a stream: its kind, its ID (the place to continue after), its content. */
export type ServerSent = { event: string; id: string | undefined; data: string };

/** The messages of a stream of server-sent events, as they arrive. Comments are left out. */
export async function* parseEvents(body: ReadableStream<Uint8Array> | null): AsyncGenerator<ServerSent> {
  if (!body) return;
  const reader = body.pipeThrough(new TextDecoderStream() as TransformStream<Uint8Array, string>).getReader();
  let text = '';
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      text += value;
      for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
        const message = messageOf(text.slice(0, end));
        text = text.slice(end + 2);
        if (message) yield message;
      }
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

function messageOf(block: string): ServerSent | null {
  const fields = new Map(
    block.split('\n').flatMap(line => {
      const colon = line.indexOf(':');
      return colon <= 0 ? [] : [[line.slice(0, colon), line.slice(colon + 1).trimStart()] as const];
    }),
  );
  const data = fields.get('data');
  return data === undefined ? null : { event: fields.get('event') ?? 'message', id: fields.get('id'), data };
}
