import { AtollError } from '../../base/error.ts';
import { writeAll } from '../../base/write-all.ts';
import type { BuilderJob, FoundImage } from '../../protocol/builder.ts';
import type { Conversation } from '../conversation.ts';
import { loginOf } from './credential.ts';
import { readImage } from './manifest.ts';
import { openRegistry } from './registry.ts';

/** Describes an image of a registry. Errors: `not_found`, `forbidden`, `unavailable`, `invalid`, `too_large`. */
export async function registryImage(
  { access, credential, version }: BuilderJob & { kind: 'registry-image' },
  conversation: Conversation,
): Promise<FoundImage> {
  const login = credential ? await loginOf(credential, conversation) : access.login;
  const store = openRegistry(access, login, conversation);
  const image = await readImage(store, version);
  const authorization = store.authorization();
  return { image, ...(login && { login }), ...(authorization !== undefined && { authorization }) };
}

/** Writes a blob as the registry sends it. Errors: as above, `no_space`. */
export async function registryBlob(
  { access, digest, bytesMax }: BuilderJob & { kind: 'registry-blob' },
  conversation: Conversation,
  output: number,
): Promise<null> {
  const store = openRegistry(access, access.login, conversation);
  await writeBounded(await store.blob(digest), output, bytesMax);
  return null;
}

/** Writes what a stream brings. Errors: `no_space` beyond the bound. */
export async function writeBounded(
  content: AsyncIterable<Uint8Array>,
  output: number,
  bytesMax: number,
): Promise<void> {
  let length = 0;
  for await (const part of content) {
    length += part.length;
    if (length > bytesMax)
      throw new AtollError('no_space', `a layer of the image is larger than ${Math.floor(bytesMax / 1024 / 1024)} MiB`);
    writeAll(output, part);
  }
}
