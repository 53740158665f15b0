import { useQuery, useQueryClient } from '@tanstack/react-query';
import { X } from 'lucide-react';
import { callAgent } from '../../api/agent.ts';
import type { Target } from '../../api/agent.ts';
import { Loaded } from '../../parts/loaded.tsx';
import { Card } from '../../parts/page.tsx';
import { Table } from '../../parts/table.tsx';
import { useToast } from '../../parts/toasts.tsx';
import { useTarget } from './target.ts';

const everyMs = 3_000;

type Process = { pid: number; tag?: string; config?: { cmd?: string; args?: string[]; cwd?: string } };

/** The commands that clients have started in a sandbox. */
export function Processes() {
  const target = useTarget();
  const client = useQueryClient();
  const toast = useToast();
  const key = ['processes', target?.sandboxId];
  const processes = useQuery({
    queryKey: key,
    queryFn: () => callAgent<{ processes?: Process[] }>(target as Target, 'process.Process/List', {}),
    refetchInterval: everyMs,
    enabled: target !== null,
  });
  const end = async (pid: number) => {
    await callAgent(target as Target, 'process.Process/SendSignal', {
      process: { pid },
      signal: 'SIGNAL_SIGTERM',
    }).catch((error: Error) => toast({ kind: 'danger', text: error.message }));
    await client.invalidateQueries({ queryKey: key });
  };
  return (
    <Card title="Commands that run">
      <Loaded of={processes}>
        {({ processes = [] }) => (
          <Table
            label="Commands"
            rows={processes}
            keyOf={({ pid }) => String(pid)}
            empty={
              <p className="muted" style={{ padding: 14 }}>
                No client has a command running.
              </p>
            }
            columns={[
              { name: 'PID', of: ({ pid }) => <span className="num">{pid}</span> },
              {
                name: 'Command',
                of: ({ config }) => (
                  <span className="mono cut" style={{ display: 'block', maxWidth: 320 }}>
                    {[config?.cmd, ...(config?.args ?? [])].join(' ')}
                  </span>
                ),
              },
              {
                name: '',
                end: true,
                of: ({ pid }) => (
                  <button
                    type="button"
                    className="button bare tiny danger"
                    aria-label={`End process ${pid}`}
                    onClick={() => void end(pid)}
                  >
                    <X size={14} /> End
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
