import { expect, test } from 'bun:test';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { createElement } from 'react';
import { usedHook } from '../../../test/support/hook.ts';
import { ApiFailure } from '../api/client.ts';
import { useDraft } from './draft.ts';
import type { FileStore } from './store.ts';

/** A file in a store, and what somebody types into it. */
async function draftOf(first: string | Uint8Array<ArrayBuffer>) {
  const file = { content: first as string | Uint8Array<ArrayBuffer> | null, version: 1, fails: 0, writes: 0 };
  const stat = () => {
    if (file.fails > 0) throw new ApiFailure(file.fails, 'it failed');
    if (file.content === null) throw new ApiFailure(404, 'it is gone');
    return { changedAt: `v${file.version}`, bytes: file.content.length };
  };
  const held = { write: Promise.resolve() };
  const store = {
    key: 'store',
    stat: async () => stat(),
    read: async () => new Response(file.content),
    async write(_: string, content: Blob) {
      file.writes++;
      await held.write;
      file.content = await content.text();
      file.version++;
    },
  } as unknown as FileStore;
  const client = new QueryClient({ defaultOptions: { queries: { retry: false, gcTime: Infinity } } });
  const used = await usedHook(
    () => useDraft(store, '/f'),
    inner => createElement(QueryClientProvider, { client }, inner),
  );
  await used.until(({ file: { isPending } }) => !isPending);
  const type = (text: string) => used.act(() => used.current().type(text));
  const save = (isForced?: boolean) => used.act(() => used.current().save(isForced));
  return {
    used,
    now: used.current,
    file,
    held,
    client,
    type,
    save,
    [Symbol.asyncDispose]: () => used[Symbol.asyncDispose](),
  };
}

test('what is typed is a draft until it is saved', async () => {
  await using draft = await draftOf('a\r\nb');
  const { now, type, save, file, client } = draft;
  expect([now().draft, now().toSave(), now().isSaving, now().conflict]).toEqual([null, '', false, null]);
  await save();
  expect(file.writes).toBe(0);
  await type('a\nb\nc');
  await type('a\nb\nd');
  // Lines keep their original ends.
  expect([now().draft, now().toSave()]).toEqual(['a\nb\nd', 'a\r\nb\r\nd']);
  await save();
  expect([now().draft, now().isSaving, file.content, file.writes]).toEqual([null, false, 'a\r\nb\r\nd', 1]);
  expect(client.getQueryData(['file', 'store', '/f'])).toEqual({ kind: 'text', text: 'a\r\nb\r\nd', changedAt: 'v2' });
});

test('a file that has changed meanwhile is not written over, unless that is wanted', async () => {
  await using draft = await draftOf('before');
  await draft.type('mine');
  Object.assign(draft.file, { content: 'theirs', version: 2 });
  await draft.save();
  expect([draft.now().conflict, draft.now().draft, draft.file.content]).toEqual(['changed', 'mine', 'theirs']);
  await draft.save(true);
  expect([draft.now().draft, draft.file.content]).toEqual([null, 'mine']);
});

test('a file that is gone is a conflict, and any other failure is none', async () => {
  await using draft = await draftOf('before');
  await draft.type('mine');
  draft.file.fails = 500;
  await draft.save();
  expect([draft.now().conflict, draft.now().draft, draft.now().isSaving]).toEqual([null, 'mine', false]);
  Object.assign(draft.file, { content: null, fails: 0 });
  await draft.save();
  expect([draft.now().conflict, draft.now().draft, draft.file.writes]).toEqual(['gone', 'mine', 0]);
});

test('what is typed while a file is written is not saved yet, and is written once', async () => {
  await using draft = await draftOf('before');
  await draft.type('first');
  const written = Promise.withResolvers<void>();
  draft.held.write = written.promise;
  let saving: Promise<void> | undefined;
  await draft.used.act(() => {
    saving = draft.now().save();
  });
  await draft.used.until(({ isSaving }) => isSaving);
  await draft.type('second');
  await draft.save();
  await draft.used.act(async () => {
    written.resolve();
    await saving;
  });
  expect([draft.now().draft, draft.now().isSaving, draft.file.content, draft.file.writes]).toEqual([
    ...['second', false, 'first', 1],
  ]);
  // From then on, it compares with the file as just written.
  await draft.save();
  expect([draft.now().draft, draft.now().conflict, draft.file.content]).toEqual([null, null, 'second']);
});

test('only text can be edited', async () => {
  await using draft = await draftOf(new Uint8Array([0, 255, 1]));
  await draft.type('text');
  expect(draft.now().draft).toBeNull();
});
