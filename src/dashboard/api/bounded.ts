/** The bytes of an answer in parts as they come; null if there are more than the limit, of which no more is read. */
export async function boundedParts(response: Response, max: number): Promise<Uint8Array<ArrayBuffer>[] | null> {
  const parts: Uint8Array<ArrayBuffer>[] = [];
  let length = 0;
  const reader = response.body?.getReader();
  for (;;) {
    const { value, done = true } = (await reader?.read()) ?? {};
    if (done || !value) return parts;
    length += value.length;
    if (length > max) {
      await reader?.cancel();
      return null;
    }
    parts.push(value);
  }
}

/** The bytes of an answer, joined; null if there are more than the limit, of which no more is read. */
export async function boundedBytes(response: Response, max: number): Promise<Uint8Array<ArrayBuffer> | null> {
  const parts = await boundedParts(response, max);
  return parts && new Uint8Array(await new Blob(parts).arrayBuffer());
}

/** The text of an answer; empty if it is longer than the limit in bytes. */
export async function boundedText(response: Response, max: number): Promise<string> {
  return new TextDecoder().decode((await boundedBytes(response, max)) ?? new Uint8Array());
}
