import { useQuery } from '@tanstack/react-query';
import { ArrowLeft, Download, Save } from 'lucide-react';
import { useEffect, useState } from 'react';
import { agentFile } from '../../../api/agent.ts';
import type { Target } from '../../../api/agent.ts';
import { ApiFailure } from '../../../api/client.ts';
import { formatBytes } from '../../../format.ts';
import { Loaded } from '../../../parts/loaded.tsx';
import { useToast } from '../../../parts/toasts.tsx';
import { nameOf } from './paths.ts';

/** Files that are shown or edited in the page. */
const shownBytesMax = 5 * 1024 ** 2;
const images = /\.(png|jpe?g|gif|webp|avif|bmp|ico)$/i;

type Content = { kind: 'text'; text: string } | { kind: 'image'; url: string } | { kind: 'bytes'; bytes: number };

/** A file: its text to edit, an image to see, anything to download. Nothing of it becomes a document of this origin. */
export function FileView({ target, path, onClose }: { target: Target; path: string; onClose: () => void }) {
  const toast = useToast();
  const [draft, setDraft] = useState<string | null>(null);
  const file = useQuery({
    queryKey: ['file', target.sandboxId, path],
    queryFn: () => contentOf(target, path),
    refetchOnWindowFocus: false,
  });
  const url = file.data?.kind === 'image' ? file.data.url : null;
  useEffect(() => () => void (url !== null && URL.revokeObjectURL(url)), [url]);
  const save = async () => {
    const response = agentFile(
      target,
      { path },
      { method: 'POST', headers: { 'Content-Type': 'application/octet-stream' }, body: new Blob([draft ?? '']) },
    );
    await response.then(
      async () => {
        toast({ kind: 'ok', text: 'Saved' });
        await file.refetch();
        setDraft(null);
      },
      (error: Error) => toast({ kind: 'danger', text: error.message }),
    );
  };
  const download = () =>
    void downloadFile(target, path).catch((error: Error) => toast({ kind: 'danger', text: error.message }));
  return (
    <div className="stack" style={{ gap: 8 }}>
      <div className="row">
        <button type="button" className="button bare" onClick={onClose}>
          <ArrowLeft size={14} /> Back
        </button>
        <span className="mono grow cut">{path}</span>
        <button type="button" className="button" onClick={download}>
          <Download size={14} /> Download
        </button>
        <button type="button" className="button primary" disabled={draft === null} onClick={() => void save()}>
          <Save size={14} /> Save
        </button>
      </div>
      <Loaded of={file}>
        {content =>
          content.kind === 'text' ? (
            <textarea
              className="editor"
              aria-label={`Text of ${path}`}
              spellCheck={false}
              value={draft ?? content.text}
              onChange={event => setDraft(event.target.value)}
            />
          ) : content.kind === 'image' ? (
            <img className="preview" src={content.url} alt={nameOf(path)} />
          ) : (
            <p className="note">{formatBytes(content.bytes)} that are no text of a size to edit here. Download them.</p>
          )
        }
      </Loaded>
    </div>
  );
}

async function contentOf(target: Target, path: string): Promise<Content> {
  const response = await agentFile(target, { path });
  const length = Number(response.headers.get('content-length') ?? 0);
  if (length > shownBytesMax) {
    await response.body?.cancel();
    return { kind: 'bytes', bytes: length };
  }
  const bytes = await response.arrayBuffer();
  if (images.test(path)) return { kind: 'image', url: URL.createObjectURL(new Blob([bytes])) };
  try {
    return { kind: 'text', text: new TextDecoder('utf-8', { fatal: true }).decode(bytes) };
  } catch {
    return { kind: 'bytes', bytes: bytes.byteLength };
  }
}

/** Larger files go through memory here; a program takes them better. */
const downloadBytesMax = 1024 ** 3;

async function downloadFile(target: Target, path: string): Promise<void> {
  const response = await agentFile(target, { path });
  if (Number(response.headers.get('content-length') ?? 0) > downloadBytesMax) {
    await response.body?.cancel();
    throw new ApiFailure(0, 'Larger than 1 GiB: read it by the SDK, sandbox.files.read, as a stream');
  }
  const url = URL.createObjectURL(new Blob([await response.arrayBuffer()], { type: 'application/octet-stream' }));
  const link = Object.assign(document.createElement('a'), { href: url, download: nameOf(path) });
  link.click();
  URL.revokeObjectURL(url);
}
