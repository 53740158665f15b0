/** What of the sandboxes is looked at: all of it is in the URL. */
export type SandboxesSearch = {
  team?: string;
  show?: 'running' | 'paused' | 'ended';
  template?: string;
  text?: string;
  metadata?: string;
  order?: 'asc';
  create?: string;
};

/** A filter that a row offers. */
export type SandboxesFilter = Pick<SandboxesSearch, 'template' | 'metadata' | 'text'>;

const text = (value: unknown) => (typeof value === 'string' || typeof value === 'number' ? String(value) : undefined);

/** Reads the search of a URL that anybody may have written. */
export function readSandboxesSearch(raw: Record<string, unknown>): SandboxesSearch {
  const { show } = raw;
  const [template, find] = [text(raw['template']), text(raw['text'])];
  const [metadata, create] = [text(raw['metadata']), text(raw['create'])];
  return {
    ...(show === 'running' || show === 'paused' || show === 'ended' ? { show } : {}),
    ...(template ? { template } : {}),
    ...(find ? { text: find } : {}),
    ...(metadata ? { metadata } : {}),
    ...(raw['order'] === 'asc' ? { order: 'asc' as const } : {}),
    ...(create ? { create } : {}),
  };
}
