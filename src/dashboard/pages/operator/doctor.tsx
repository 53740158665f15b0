import { RefreshCw } from 'lucide-react';
import type { Examination } from '../../../protocol/api/installation.ts';
import { useRead } from '../../api/hooks.ts';
import { Ago, Badge } from '../../parts/bits.tsx';
import type { Tone } from '../../parts/bits.tsx';
import { Loaded } from '../../parts/loaded.tsx';
import { Page } from '../../parts/page.tsx';
import { Table } from '../../parts/table.tsx';

type Finding = Examination['findings'][number];

const tones: Record<Finding['status'], Tone> = { ok: 'ok', limited: 'warn', missing: 'danger' };
const ranks = { missing: 0, limited: 1, ok: 2 } as const;

/** Without this, no sandbox runs. */
const blocks = ({ needed, status }: Finding) => needed && status === 'missing';
const rankOf = (finding: Finding) => (blocks(finding) ? -1 : ranks[finding.status]);

/** The findings of `atoll doctor`, with remedies; those that need attention come first. */
export function Doctor() {
  const examined = useRead<Examination>('/admin/doctor', { personal: true, keep: true });
  return (
    <Page
      title="Doctor"
      about="What the machine that answers here can do for sandboxes, found out by trying it"
      actions={
        <>
          {examined.data && (
            <span className="muted small">
              examined <Ago at={examined.data.examinedAt} />
            </span>
          )}
          <button
            type="button"
            className="button"
            disabled={examined.isFetching}
            onClick={() => void examined.refetch()}
          >
            <RefreshCw size={14} /> {examined.isFetching ? 'Examining…' : 'Examine again'}
          </button>
        </>
      }
    >
      <Loaded of={examined}>
        {({ findings }) => (
          <>
            <Verdict findings={findings} />
            <Table
              label="Findings"
              rows={findings.toSorted((a, b) => rankOf(a) - rankOf(b))}
              keyOf={({ name }) => name}
              empty="Nothing was examined"
              columns={[
                { name: 'State', of: ({ status }) => <Badge tone={tones[status]}>{status}</Badge> },
                { name: 'What', of: finding => <Named finding={finding} /> },
                { name: 'Seen', of: finding => <Seen finding={finding} /> },
              ]}
            />
          </>
        )}
      </Loaded>
    </Page>
  );
}

function Named({ finding: { name, needed } }: { finding: Finding }) {
  return (
    <span style={{ whiteSpace: 'nowrap' }}>
      {name} {needed && <span className="muted small">needed</span>}
    </span>
  );
}

function Seen({ finding: { detail, remedy } }: { finding: Finding }) {
  return (
    <div className="finding">
      <div>{detail}</div>
      {remedy !== undefined && <div className="remedy">{remedy}</div>}
    </div>
  );
}

/** Says that sandboxes can run only if one has run. */
function Verdict({ findings }: { findings: readonly Finding[] }) {
  const blocking = findings.filter(blocks).map(({ name }) => name);
  const others = findings.filter(({ status }) => status !== 'ok').length - blocking.length;
  if (blocking.length > 0)
    return (
      <div className="note danger" role="alert">
        No sandbox can run before this is mended: {blocking.join(', ')}
      </div>
    );
  const ran = findings.some(({ name, status }) => name === 'a sandbox' && status === 'ok');
  return (
    <div className={`note ${others > 0 ? 'warn' : ''}`} role="status">
      {ran
        ? 'Sandboxes can run here: one just did. '
        : 'Nothing was found that speaks against sandboxes here, but none was run. '}
      {others > 0 && `${others} more ${others === 1 ? 'thing' : 'things'} would be possible.`}
    </div>
  );
}
