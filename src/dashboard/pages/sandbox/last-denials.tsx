import type { SandboxLogEntry } from '../../../protocol/api/sandbox-logs.ts';
import { useLogStream } from '../../api/log-stream.ts';
import { Loading, Problem } from '../../parts/bits.tsx';
import { Card } from '../../parts/page.tsx';
import { Table } from '../../parts/table.tsx';
import { TimeOfDay } from '../../parts/zone.tsx';

const shownMax = 20;

/** The last connections that the policy refused. */
export function LastDenials({ sandboxId }: { sandboxId: string }) {
  const { entries, error } = useLogStream<SandboxLogEntry>(`/sandboxes/${encodeURIComponent(sandboxId)}/logs/stream`, {
    tail: shownMax,
    logger: 'network',
    search: 'denied: ',
  });
  const denials = entries?.slice(-shownMax);
  return (
    <Card title="Last refused">
      {error && <Problem error={error} />}
      {denials ? (
        <Table
          label="Last refused"
          rows={denials.toReversed()}
          keyOf={({ place }) => place}
          empty="Nothing was refused"
          columns={[
            { name: 'When', of: ({ timestamp }) => <TimeOfDay at={timestamp} /> },
            { name: 'What', of: ({ message }) => <span className="mono">{message.replace(/^denied: /, '')}</span> },
          ]}
        />
      ) : (
        !error && <Loading />
      )}
    </Card>
  );
}
