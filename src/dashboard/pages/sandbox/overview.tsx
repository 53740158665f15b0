import { Link } from '@tanstack/react-router';
import type { LifecycleEvent } from '../../../protocol/api/event.ts';
import type { SandboxDetail } from '../../../protocol/api/sandbox.ts';
import { useMay } from '../../api/session.tsx';
import { formatBytes, formatClock } from '../../format.ts';
import { Ago, Copy } from '../../parts/bits.tsx';
import { CodeTabs } from '../../code/code.tsx';
import { Card } from '../../parts/page.tsx';
import { Family } from './family.tsx';
import { momentOf } from './moments.ts';
import { NowStrip } from './now-strip.tsx';
import { Ports } from './ports.tsx';
import { Processes } from './processes.tsx';
import { eventsMax, useSandbox } from './sandbox.tsx';
import { ExactTime, useZone } from '../../parts/zone.tsx';

/** A sandbox's properties, its history, and what runs in it. */
export function Overview() {
  const { sandboxId, detail, events } = useSandbox();
  const may = useMay('developer');
  return (
    <>
      {detail?.state === 'running' && <NowStrip sandboxId={sandboxId} />}
      <div className="columns">
        <div className="stack">
          {detail && <About detail={detail} />}
          {detail?.state === 'running' && may && <Processes />}
          {detail?.state === 'running' && may && <Ports />}
          <Family />
        </div>
        <div className="stack">
          <Card title="Timeline">
            <div className="body">
              <ol className="timeline">
                {events.map(event => (
                  <Moment key={event.id} event={event} />
                ))}
              </ol>
              {events.length >= eventsMax && (
                <p className="small muted">The last {eventsMax} moments; earlier ones are not shown.</p>
              )}
            </div>
          </Card>
          {detail && (
            <Card title="From a program">
              <div className="body">
                <CodeTabs texts={connectCode(sandboxId)} />
              </div>
            </Card>
          )}
        </div>
      </div>
    </>
  );
}

/** A link to who made and changed a sandbox, for those who may read the audit log. */
function MadeBy({ sandboxID }: { sandboxID: string }) {
  return useMay('admin') ? (
    <>
      <dt>Audit</dt>
      <dd>
        <Link to="/audit" search={{ target: `sandbox:${sandboxID}` }}>
          who made and changed it
        </Link>
      </dd>
    </>
  ) : null;
}

/** Who can access a sandbox. Viewers are not told whether it has a token: to them it looks like one without. */
function Access({ of: { envdAccessToken } }: { of: SandboxDetail }) {
  return useMay('developer') ? (
    <>
      <dt>Access</dt>
      <dd>{envdAccessToken === undefined ? 'anybody who knows its ID' : 'with its own token'}</dd>
    </>
  ) : null;
}

function About({ detail }: { detail: SandboxDetail }) {
  return (
    <Card title="About">
      <dl className="facts body">
        <dt>Template</dt>
        <dd>
          <Link to="/templates/$templateId" params={{ templateId: detail.templateID }} className="mono">
            {detail.alias ?? detail.templateID}
          </Link>
        </dd>
        <dt>Started</dt>
        <dd>
          <Ago at={detail.startedAt} />{' '}
          <span className="muted">
            (<ExactTime at={detail.startedAt} />)
          </span>
        </dd>
        <dt>Node</dt>
        <dd className="mono">{detail.nodeID}</dd>
        <dt>Size</dt>
        <dd>
          {detail.cpuCount} CPU, {formatBytes(detail.memoryMB * 1024 ** 2)} memory,{' '}
          {formatBytes(detail.diskSizeMB * 1024 ** 2)} disk
        </dd>
        {detail.envdUnresponsiveAtPause && (
          <>
            <dt>Memory</dt>
            <dd>its agent did not answer when it was paused: it boots from its files</dd>
          </>
        )}
        <dt>At its end</dt>
        <dd>
          {detail.lifecycle.onTimeout === 'pause' ? 'it is paused' : 'it is killed'}
          {detail.lifecycle.autoResume && ', and resumes when something connects'}
        </dd>
        <MadeBy sandboxID={detail.sandboxID} />
        <Access of={detail} />
        {detail.volumeMounts.length > 0 && (
          <>
            <dt>Volumes</dt>
            <dd>
              {detail.volumeMounts.map(({ name, path }) => (
                <div key={path}>
                  {name} <span className="mono muted">{path}</span>
                </div>
              ))}
            </dd>
          </>
        )}
        {Object.entries(detail.metadata ?? {}).length > 0 && (
          <>
            <dt>Metadata</dt>
            <dd className="row" style={{ gap: 4 }}>
              {Object.entries(detail.metadata ?? {}).map(([key, value]) => (
                <Copy key={key} text={value}>
                  <span className="chip cut">
                    {key}={value}
                  </span>
                </Copy>
              ))}
            </dd>
          </>
        )}
      </dl>
    </Card>
  );
}

function Moment({ event }: { event: LifecycleEvent }) {
  const zone = useZone();
  const { text, tone, more } = momentOf(event, at => formatClock(at, zone));
  return (
    <li className={tone}>
      <span>
        {text}
        {more.length > 0 && <span className="muted"> {more.join(', ')}</span>}
      </span>
      <span className="muted small">
        <Ago at={event.timestamp} />
      </span>
    </li>
  );
}

const connectCode = (id: string): Record<string, string> => ({
  JavaScript: `import { Sandbox } from 'e2b';\n\nconst sandbox = await Sandbox.connect('${id}');`,
  Python: `from e2b import Sandbox\n\nsandbox = Sandbox.connect("${id}")`,
  curl: `curl ${location.origin}/sandboxes/${id} -H "X-API-Key: $E2B_API_KEY"`,
});
