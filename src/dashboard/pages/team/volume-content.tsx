import { useQuery } from '@tanstack/react-query';
import { Download, File, Folder } from 'lucide-react';
import { useState } from 'react';
import type { VolumeAndToken, VolumeEntryStat } from '../../../protocol/api/volume.ts';
import { ask, askJson } from '../../api/client.ts';
import { useRead } from '../../api/hooks.ts';
import { formatBytes } from '../../format.ts';
import { Ago } from '../../parts/bits.tsx';
import { Loaded } from '../../parts/loaded.tsx';
import { Card } from '../../parts/page.tsx';
import { Table } from '../../parts/table.tsx';
import { useToast } from '../../parts/toasts.tsx';
import { Crumbs } from '../sandbox/files/crumbs.tsx';
import { nameOf } from '../sandbox/files/paths.ts';

/** What is in a volume, folder by folder. */
export function VolumeContent({ volumeId }: { volumeId: string }) {
  const volume = useRead<VolumeAndToken>(`/volumes/${volumeId}`);
  const toast = useToast();
  const [path, setPath] = useState('/');
  const token = volume.data?.token;
  const entries = useQuery({
    queryKey: ['volumecontent', volumeId, path],
    queryFn: () =>
      askJson<VolumeEntryStat[]>(`/volumecontent/${volumeId}/dir`, { query: { path }, bearer: token ?? '' }),
    enabled: token !== undefined,
  });
  const download = async (file: string) => {
    const response = await ask(`/volumecontent/${volumeId}/file`, { query: { path: file }, bearer: token ?? '' });
    const url = URL.createObjectURL(new Blob([await response.arrayBuffer()], { type: 'application/octet-stream' }));
    Object.assign(document.createElement('a'), { href: url, download: nameOf(file) }).click();
    URL.revokeObjectURL(url);
  };
  return (
    <Card title={`In ${volume.data?.name ?? 'the volume'}`} actions={<Crumbs path={path} onOpen={setPath} />}>
      <Loaded of={entries}>
        {rows => (
          <Table
            label={`Content of ${path}`}
            rows={rows}
            keyOf={({ path }) => path}
            empty="This folder is empty"
            columns={[
              {
                name: 'Name',
                of: ({ name, type, path }) =>
                  type === 'directory' ? (
                    <button type="button" className="linklike row mono" onClick={() => setPath(path)}>
                      <Folder size={15} aria-label="Folder" /> {name}
                    </button>
                  ) : (
                    <span className="row mono">
                      <File size={15} aria-label="File" /> {name}
                    </span>
                  ),
              },
              { name: 'Size', end: true, of: ({ type, size }) => (type === 'directory' ? '' : formatBytes(size)) },
              { name: 'Changed', of: ({ mtime }) => <Ago at={mtime} /> },
              {
                name: ' ',
                end: true,
                of: ({ type, name, path }) =>
                  type === 'file' && (
                    <button
                      type="button"
                      className="button bare tiny"
                      aria-label={`Download ${name}`}
                      onClick={() =>
                        void download(path).catch((error: Error) => toast({ kind: 'danger', text: error.message }))
                      }
                    >
                      <Download size={14} />
                    </button>
                  ),
              },
            ]}
          />
        )}
      </Loaded>
    </Card>
  );
}
