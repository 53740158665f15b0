import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { ApiFailure } from '../api/client.ts';
import { useToast } from '../parts/toasts.tsx';
import { contentOf } from './content.ts';
import type { Content } from './content.ts';
import { withEndsOf } from './line-ends.ts';
import type { FileStore } from './store.ts';

/** A text being edited, and the file's text when editing began: the file may be read again meanwhile. */
type Draft = { text: string; before: string; changedAt: string | undefined };

/** What happened to a file since editing began. */
export type Conflict = 'changed' | 'gone';

/** A file and the draft of its new text; saving finds out whether the file has changed meanwhile. */
export function useDraft(store: FileStore, path: string) {
  const toast = useToast();
  const client = useQueryClient();
  const [draft, setDraft] = useState<Draft | null>(null);
  const [conflict, setConflict] = useState<Conflict | null>(null);
  const [isSaving, setSaving] = useState(false);
  const queryKey = ['file', store.key, path];
  const file = useQuery({
    queryKey,
    queryFn: () => contentOf(store, path),
    refetchOnWindowFocus: false,
    refetchOnReconnect: false,
  });
  const type = (text: string) => {
    const { data } = file;
    if (data?.kind === 'text')
      setDraft(now => (now ? { ...now, text } : { text, before: data.text, changedAt: data.changedAt }));
  };
  const write = async (saved: Draft, isForced: boolean) => {
    const found = isForced ? null : await conflictOf(store, path, saved.changedAt);
    if (found) return setConflict(found);
    const text = withEndsOf(saved.before, saved.text);
    await store.write(path, new Blob([text]));
    const { changedAt } = await store.stat(path);
    const content: Content = { kind: 'text', text, changedAt };
    client.setQueryData(queryKey, content);
    // What was typed while saving is not saved yet.
    setDraft(now => (now && now.text !== saved.text ? { text: now.text, before: text, changedAt } : null));
    toast({ kind: 'ok', text: 'Saved' });
  };
  const save = async (isForced = false) => {
    if (!draft || isSaving) return;
    setSaving(true);
    await write(draft, isForced).catch((error: Error) => toast({ kind: 'danger', text: error.message }));
    setSaving(false);
  };
  /** What a save writes. */
  const toSave = () => (draft ? withEndsOf(draft.before, draft.text) : '');
  return { file, draft: draft?.text ?? null, toSave, type, save, isSaving, conflict, setConflict };
}

/** Whether a file differs from what it was at that time; null if it is the same. */
async function conflictOf(store: FileStore, path: string, since: string | undefined): Promise<Conflict | null> {
  try {
    return (await store.stat(path)).changedAt === since ? null : 'changed';
  } catch (error) {
    if (error instanceof ApiFailure && error.status === 404) return 'gone';
    throw error;
  }
}
