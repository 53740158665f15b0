import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router';
import type { VolumeAndToken, VolumeEntryStat } from '../../../protocol/api/volume.ts';
import { ask, askJson } from '../../api/client.ts';
import type { Ask } from '../../api/client.ts';
import { useRead } from '../../api/hooks.ts';
import { useMay } from '../../api/session.tsx';
import { codeOfFileChange } from '../../code/sdk-code.ts';
import { Files } from '../../files/files.tsx';
import type { FilesSearch } from '../../files/search.ts';
import type { Entry, FileStore } from '../../files/store.ts';
import { Copy, Empty } from '../../parts/bits.tsx';
import { Loaded } from '../../parts/loaded.tsx';
import { Page } from '../../parts/page.tsx';

/** A volume: the files in it. */
export function VolumeContent() {
  const { volumeId = '' } = useParams({ strict: false });
  const search: FilesSearch = useSearch({ strict: false });
  const navigate = useNavigate();
  const may = useMay('developer');
  // The token reads and writes, so viewers get none.
  const volume = useRead<VolumeAndToken>(`/volumes/${encodeURIComponent(volumeId)}`, { enabled: may });
  const go = (next: FilesSearch) => void navigate({ to: '.', search: next });
  return (
    <Page
      title={volume.data?.name ?? 'Volume'}
      about={
        <span className="row" style={{ marginTop: 4 }}>
          <Copy text={volumeId} /> <Link to="/volumes">all volumes</Link>
        </span>
      }
    >
      {may ? (
        <Loaded of={volume}>
          {({ volumeID, token }) => (
            <Files key={volumeID} store={volumeStore(volumeID, token)} search={search} onGo={go} mayChange />
          )}
        </Loaded>
      ) : (
        <div className="table-wrap">
          <Empty title="Not for viewers">
            <p>Its files take the role developer in the team.</p>
          </Empty>
        </div>
      )}
    </Page>
  );
}

function volumeStore(volumeId: string, token: string): FileStore {
  const base = `/volumecontent/${encodeURIComponent(volumeId)}`;
  const call = (what: 'dir' | 'file' | 'path', path: string, options: Ask = {}) =>
    ask(`${base}/${what}`, { ...options, query: { path, ...options.query }, bearer: token });
  return {
    key: volumeId,
    home: '/',
    async list(path) {
      const entries = await askJson<VolumeEntryStat[]>(`${base}/dir`, { query: { path }, bearer: token });
      return entries.map(entryOf);
    },
    stat: async path => entryOf((await (await call('path', path)).json()) as VolumeEntryStat),
    read: path => call('file', path),
    codeFor: path => `await volume.readFile(${JSON.stringify(path)})`,
    codeOf: change => codeOfFileChange({ kind: 'Volume', id: volumeId }, change),
    write: (path, content, signal) =>
      call('file', path, { method: 'PUT', body: content, query: { force: true }, signal }),
    makeFolder: path => call('dir', path, { method: 'POST' }),
    remove: path => call('path', path, { method: 'DELETE' }),
  };
}

function entryOf({ name, path, type, size, mtime, uid, gid, mode }: VolumeEntryStat): Entry {
  return {
    name,
    path,
    isFolder: type === 'directory',
    bytes: size,
    changedAt: mtime,
    owner: `${uid}:${gid}`,
    mode: mode.toString(8).padStart(4, '0'),
  };
}
