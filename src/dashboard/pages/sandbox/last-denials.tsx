import { useRead } from '../../api/hooks.ts';
import { formatClock } from '../../format.ts';
import { Loaded } from '../../parts/loaded.tsx';
import { Card } from '../../parts/page.tsx';
import { Table } from '../../parts/table.tsx';
import type { LogEntry } from './log-tail.ts';

const everyMs = 3_000;
const shownMax = 20;

/** The last connections that the policy refused. */
export function LastDenials({ sandboxId, live }: { sandboxId: string; live: boolean }) {
  const logs = useRead<{ logs: LogEntry[] }>(`/v2/sandboxes/${encodeURIComponent(sandboxId)}/logs`, {
    query: { direction: 'backward', search: 'denied: ', limit: shownMax },
    every: live && everyMs,
  });
  return (
    <Card title="Last refused">
      <Loaded of={logs}>
        {({ logs }) => (
          <Table
            label="Last refused"
            rows={logs.filter(({ fields }) => fields['logger'] === 'network')}
            keyOf={({ timestamp, message }) => `${timestamp} ${message}`}
            empty="Nothing was refused"
            columns={[
              {
                name: 'When',
                of: ({ timestamp }) => <time title={timestamp}>{formatClock(new Date(timestamp))}</time>,
              },
              { name: 'What', of: ({ message }) => <span className="mono">{message.replace(/^denied: /, '')}</span> },
            ]}
          />
        )}
      </Loaded>
    </Card>
  );
}
