import { useQuery } from '@tanstack/react-query';
import { boundedText } from '../../api/bounded.ts';
import { agentFile, agentPort } from '../../api/agent.ts';
import type { Target } from '../../api/agent.ts';
import { Loaded } from '../../parts/loaded.tsx';
import { Card } from '../../parts/page.tsx';
import { Table } from '../../parts/table.tsx';
import { listeningPorts } from './listening.ts';
import { useTarget } from './target.ts';

const everyMs = 3_000;
const tables = ['/proc/net/tcp', '/proc/net/tcp6'];

/** The address of a sandbox's port, if this page's own host has names below it. */
function addressOf({ sandboxId }: Target, port: number): string | null {
  const { protocol, hostname, host } = location;
  return /^[\d.]+$|:/.test(hostname) ? null : `${protocol}//${port}-${sandboxId}.${host}`;
}

/** A longer table of sockets is not read. */
const tableBytesMax = 16 * 1024 ** 2;

/** The ports that programs in a sandbox listen on, and their addresses. */
export function Ports() {
  const target = useTarget();
  const ports = useQuery({
    queryKey: ['ports', target?.sandboxId],
    async queryFn({ signal }) {
      const read = async (path: string) =>
        boundedText(await agentFile(target as Target, { path }, { signal }), tableBytesMax);
      return listeningPorts(await Promise.all(tables.map(read))).filter(({ port }) => port !== agentPort);
    },
    refetchInterval: everyMs,
    enabled: target !== null,
  });
  if (!target) return null;
  return (
    <Card title="Ports that listen">
      <Loaded of={ports}>
        {rows => (
          <Table
            label="Ports"
            rows={rows}
            keyOf={({ port }) => String(port)}
            empty={
              <p className="muted" style={{ padding: 14 }}>
                Nothing listens.
              </p>
            }
            columns={[
              { name: 'Port', of: ({ port }) => <span className="num">{port}</span> },
              {
                name: 'Address',
                of: ({ port, isLocal }) => <PortAddress address={addressOf(target, port)} isLocal={isLocal} />,
              },
            ]}
          />
        )}
      </Loaded>
    </Card>
  );
}

function PortAddress({ address, isLocal }: { address: string | null; isLocal: boolean }) {
  if (address === null) return <span className="muted">{isLocal ? 'inside alone' : 'every address'}</span>;
  return (
    <a href={address} target="_blank" rel="noreferrer" className="mono">
      {address}
    </a>
  );
}
