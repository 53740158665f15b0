const [hourMs, dayMs] = [3_600_000, 86_400_000];
/** How long ago a sandbox may have started, by the name in the URL, ms. */
export const sinceMs = { '15m': hourMs / 4, '1h': hourMs, '6h': 6 * hourMs, '24h': dayMs, '7d': 7 * dayMs };
type Since = keyof typeof sinceMs;

/** Which sandboxes are shown: all of this is in the URL. */
export type SandboxesSearch = {
  team?: string;
  show?: 'running' | 'paused' | 'ended';
  template?: string;
  text?: string;
  node?: string;
  /** Started no longer ago than this. */
  since?: Since;
  metadata?: string;
  order?: 'asc';
  create?: string;
};

/** A filter that a row offers. */
export type SandboxesFilter = Pick<SandboxesSearch, 'template' | 'metadata' | 'text' | 'node'>;

const text = (value: unknown) => (typeof value === 'string' || typeof value === 'number' ? String(value) : undefined);

/** Reads the search part of a URL, which anybody may have written. */
export function readSandboxesSearch(raw: Record<string, unknown>): SandboxesSearch {
  const { show } = raw;
  const [template, find] = [text(raw['template']), text(raw['text'])];
  const node = text(raw['node']);
  const since = (Object.keys(sinceMs) as Since[]).find(name => name === raw['since']);
  const [metadata, create] = [text(raw['metadata']), text(raw['create'])];
  return {
    ...(show === 'running' || show === 'paused' || show === 'ended' ? { show } : {}),
    ...(template ? { template } : {}),
    ...(find ? { text: find } : {}),
    ...(node ? { node } : {}),
    ...(since ? { since } : {}),
    ...(metadata ? { metadata } : {}),
    ...(raw['order'] === 'asc' ? { order: 'asc' as const } : {}),
    ...(create ? { create } : {}),
  };
}

/** Whether a search excludes sandboxes by anything but their state. */
export const isFiltered = ({ template, text, node, since, metadata }: SandboxesSearch): boolean =>
  [template, text, node, since, metadata].some(value => value !== undefined);
