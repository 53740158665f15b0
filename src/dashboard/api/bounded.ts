/** The bytes of an answer; null where there are more than so many, of which no more is read. */
export async function boundedBytes(response: Response, max: number): Promise<Uint8Array<ArrayBuffer> | null> {
  const parts: Uint8Array[] = [];
  let length = 0;
  const reader = response.body?.getReader();
  for (;;) {
    const { value, done = true } = (await reader?.read()) ?? {};
    if (done || !value) break;
    length += value.length;
    if (length > max) {
      await reader?.cancel();
      return null;
    }
    parts.push(value);
  }
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

/** The text of an answer; empty where it is longer than so many bytes. */
export async function boundedText(response: Response, max: number): Promise<string> {
  return new TextDecoder().decode((await boundedBytes(response, max)) ?? new Uint8Array());
}
