import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { Eye, Skull, X } from 'lucide-react';
import { useRef } from 'react';
import { boundedText } from '../../api/bounded.ts';
import { agentFile, callAgent } from '../../api/agent.ts';
import type { Target } from '../../api/agent.ts';
import { useAct } from '../../code/calls.tsx';
import { codeOfSignal } from '../../code/sdk-code.ts';
import { formatBytes } from '../../format.ts';
import { Loaded } from '../../parts/loaded.tsx';
import { Card } from '../../parts/page.tsx';
import { Table } from '../../parts/table.tsx';
import { useToast } from '../../parts/toasts.tsx';
import { cpuPercent, takenOf, userName } from './process-use.ts';
import type { Taken } from './process-use.ts';
import { useSandbox } from './sandbox.tsx';
import { useTarget } from './target.ts';

const everyMs = 3_000;
/** Limit of a file that is read: the requested files are short, but a sandbox may have put another in their place. */
const readBytesMax = 1024 ** 2;

type Process = { pid: number; tag?: string; config?: { cmd?: string; args?: string[]; cwd?: string } };

/** Use is shown for this many commands: each takes requests of its own. */
const measuredMax = 20;
/** The commands `of` a sandbox by their PIDs, and their use at that moment. */
type Look = { of: string; pids: readonly number[]; atMs: number; taken: ReadonlyMap<number, Taken>; passwd: string };
type Looks = { now: Look; before: Look | null };

/** The commands' current use, and that at the look before; nothing about new commands, most of which end at once. */
function useLooks(target: Target | null, pids: readonly number[]): Looks | null {
  const last = useRef<Look>(undefined);
  const { data = null } = useQuery({
    queryKey: ['process use', target?.sandboxId],
    async queryFn({ signal }): Promise<Looks | null> {
      if (!target) return null;
      const read = async (path: string) => {
        const response = await agentFile(target, { path }, { signal }).catch(() => null);
        return response ? boundedText(response, readBytesMax) : '';
      };
      const takenBy = async (pid: number) =>
        takenOf(...(await Promise.all([read(`/proc/${pid}/stat`), read(`/proc/${pid}/status`)])));
      const of = target.sandboxId;
      const before = last.current?.of === of ? last.current : null;
      const asked = pids.filter(pid => before?.pids.includes(pid)).slice(0, measuredMax);
      const found = await Promise.all(asked.map(async pid => [pid, await takenBy(pid)] as const));
      const taken = new Map(found.flatMap(([pid, its]) => (its ? [[pid, its] as const] : [])));
      const passwd = before?.passwd ?? (await read('/etc/passwd'));
      last.current = { of, pids, atMs: performance.now(), taken, passwd };
      return { now: last.current, before };
    },
    refetchInterval: everyMs,
    enabled: target !== null && pids.length > 0,
  });
  return data;
}

type UseProps = { pid: number; looks: Looks | null };

function User({ pid, looks }: UseProps) {
  const taken = looks?.now.taken.get(pid);
  return taken ? <span className="mono">{userName(looks?.now.passwd ?? '', taken.userId)}</span> : <Nothing />;
}

function Cpu({ pid, looks }: UseProps) {
  const [before, now] = [looks?.before?.taken.get(pid), looks?.now.taken.get(pid)];
  if (!before || !now || !looks?.before) return <Nothing />;
  return <>{cpuPercent(before, now, looks.now.atMs - looks.before.atMs).toFixed(0)} %</>;
}

function Memory({ pid, looks }: UseProps) {
  const taken = looks?.now.taken.get(pid);
  return taken ? <>{formatBytes(taken.memoryBytes)}</> : <Nothing />;
}

const Nothing = () => <span className="muted">–</span>;

/** The commands that clients have started in a sandbox. */
export function Processes() {
  const target = useTarget();
  const client = useQueryClient();
  const toast = useToast();
  const act = useAct();
  const { sandboxId } = useSandbox();
  const key = ['processes', target?.sandboxId];
  const processes = useQuery({
    queryKey: key,
    queryFn: () => callAgent<{ processes?: Process[] }>(target as Target, 'process.Process/List', {}),
    refetchInterval: everyMs,
    enabled: target !== null,
  });
  const looks = useLooks(target, processes.data?.processes?.map(({ pid }) => pid) ?? []);
  const send = async (pid: number, signal: Signal) => {
    await callAgent(target as Target, 'process.Process/SendSignal', {
      process: { pid },
      signal: `SIGNAL_${signal}`,
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
                  <span className="mono cut" style={{ display: 'block', maxWidth: 260 }}>
                    {[config?.cmd, ...(config?.args ?? [])].join(' ')}
                  </span>
                ),
              },
              { name: 'User', of: ({ pid }) => <User pid={pid} looks={looks} /> },
              { name: 'CPU', end: true, of: ({ pid }) => <Cpu pid={pid} looks={looks} /> },
              { name: 'Memory', end: true, of: ({ pid }) => <Memory pid={pid} looks={looks} /> },
              {
                name: '',
                end: true,
                of: ({ pid }) => (
                  <ProcessActions
                    pid={pid}
                    send={signal =>
                      act(
                        () => codeOfSignal(sandboxId, pid, signal),
                        () => void send(pid, signal),
                      )
                    }
                  />
                ),
              },
            ]}
          />
        )}
      </Loaded>
    </Card>
  );
}

/** Asks a program to end, or kills it. */
type Signal = 'SIGTERM' | 'SIGKILL';

function ProcessActions({ pid, send }: { pid: number; send: (signal: Signal) => void }) {
  const { sandboxId } = useSandbox();
  return (
    <>
      <Link
        className="button bare tiny"
        to="/sandboxes/$sandboxId/terminal"
        params={{ sandboxId }}
        search={{ watch: pid }}
        aria-label={`Watch process ${pid}`}
      >
        <Eye size={14} /> Watch
      </Link>
      <button
        type="button"
        className="button bare tiny"
        aria-label={`End process ${pid}`}
        title="Asks it to end (SIGTERM)"
        onClick={() => send('SIGTERM')}
      >
        <X size={14} /> End
      </button>
      <button
        type="button"
        className="button bare tiny danger"
        aria-label={`Kill process ${pid}`}
        title="Does not ask (SIGKILL)"
        onClick={() => send('SIGKILL')}
      >
        <Skull size={14} /> Kill
      </button>
    </>
  );
}
