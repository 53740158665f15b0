import { useNavigate, useSearch } from '@tanstack/react-router';
import type { AuditEntry } from '../../protocol/api/audit.ts';
import { X } from 'lucide-react';
import { usePages } from '../api/pages.ts';
import { useMay } from '../api/session.tsx';
import { Ago, Empty } from '../parts/bits.tsx';
import { formText } from '../parts/form-text.ts';
import { Page } from '../parts/page.tsx';
import { Paged } from '../parts/rows/paged.tsx';
import { Table } from '../parts/table.tsx';
import { readAuditSearch } from './audit-search.ts';
import type { AuditSearch } from './audit-search.ts';

type AuditFilter = Partial<Record<keyof AuditSearch, string | undefined>>;

/** The filters of a list of entries, each a chip that removes it. */
const chips = [
  { name: 'actor', word: 'by', all: 'By anybody' },
  { name: 'target', word: 'about', all: 'About anything' },
] as const;

/** Who changed what in the whole installation. */
export const Audit = () => <AuditOf path="/admin/audit" personal about="Every change of the last ninety days" />;

/** Who changed what in the team. */
export function TeamAudit() {
  const about = 'Every change of the team in the last ninety days';
  if (useMay('admin')) return <AuditOf path="/audit" about={about} />;
  return (
    <Page title="Audit" about={about}>
      <div className="table-wrap">
        <Empty title="For admins">
          <p>Admins of the team see who changed what.</p>
        </Empty>
      </div>
    </Page>
  );
}

function AuditOf({ path, personal, about }: { path: string; personal?: boolean; about: string }) {
  const search: AuditSearch = useSearch({ strict: false });
  const { operation, actor, target } = search;
  const navigate = useNavigate();
  const show = (next: AuditFilter) =>
    void navigate({ to: '.', search: readAuditSearch({ operation, actor, target, ...next }) });
  const entries = usePages<AuditEntry>(path, { personal: personal ?? false, query: { operation, actor, target } });
  return (
    <Page title="Audit" about={about}>
      <form
        className="row"
        key={operation}
        onSubmit={event => {
          event.preventDefault();
          show({ operation: formText(event.currentTarget, 'operation') });
        }}
      >
        <input name="operation" aria-label="Operation" placeholder="Operation" defaultValue={operation} />
        <button className="button">Filter</button>
        {chips.map(
          ({ name, word, all }) =>
            search[name] !== undefined && (
              <button key={name} type="button" className="chip" title={all} onClick={() => show({ [name]: undefined })}>
                {word} {search[name]} <X size={12} aria-hidden />
              </button>
            ),
        )}
      </form>
      <Paged of={entries}>{rows => <AuditTable rows={rows} onShow={show} />}</Paged>
    </Page>
  );
}

type AuditTableProps = { rows: AuditEntry[]; onShow: (next: AuditFilter) => void };

function AuditTable({ rows, onShow }: AuditTableProps) {
  return (
    <Table
      label="Audit"
      file="audit"
      rows={rows}
      keyOf={({ id }) => id}
      empty="Nothing was changed"
      columns={[
        { name: 'When', text: ({ timestamp }) => timestamp, of: ({ timestamp }) => <Ago at={timestamp} /> },
        {
          name: 'Operation',
          text: ({ operation }) => operation,
          of: ({ operation }) => (
            <button type="button" className="linklike" onClick={() => onShow({ operation })}>
              {operation}
            </button>
          ),
        },
        { name: 'What', text: ({ target }) => target, of: ({ target }) => <span className="mono">{target}</span> },
        {
          name: 'Who',
          text: ({ actor: { kind, id } }) => (id === null ? kind : `${kind} ${id}`),
          of: ({ actor }) => <Who of={actor} onChoose={actor => onShow({ actor })} />,
        },
        {
          name: 'From',
          text: ({ address }) => address,
          of: ({ address }) => <span className="mono muted">{address}</span>,
        },
        { name: 'Answer', end: true, text: ({ status }) => status, of: ({ status }) => status },
        {
          name: 'Change',
          text: changeOf,
          of: entry => (
            <span className="mono muted cut" style={{ display: 'block', maxWidth: 300 }} title={changeOf(entry)}>
              {changeOf(entry)}
            </span>
          ),
        },
      ]}
    />
  );
}

type WhoProps = { of: AuditEntry['actor']; onChoose: (id: string) => void };

/** Who changed something; a click shows their other changes. */
function Who({ of: { kind, id }, onChoose }: WhoProps) {
  if (id === null) return kind;
  return (
    <button
      type="button"
      className="linklike"
      title={`All that ${id} changed`}
      style={{ whiteSpace: 'nowrap' }}
      onClick={() => onChoose(id)}
    >
      {kind} <span className="mono">{id.slice(0, 8)}</span>
    </button>
  );
}

/** The values before and after, as text. */
const changeOf = ({ before, after }: AuditEntry): string =>
  before || after ? [before, after].map(part => (part ? JSON.stringify(part) : '')).join(' → ') : '';
