import { useNavigate, useSearch } from '@tanstack/react-router';
import type { AuditEntry } from '../../protocol/api/audit.ts';
import { useRead } from '../api/hooks.ts';
import { Ago } from '../parts/bits.tsx';
import { formText } from '../parts/form-text.ts';
import { Loaded } from '../parts/loaded.tsx';
import { Page } from '../parts/page.tsx';
import { Table } from '../parts/table.tsx';
import type { AuditSearch } from './audit-search.ts';

/** Who changed what in the whole installation. */
export const Audit = () => <AuditOf path="/admin/audit" personal about="Every change of the last ninety days" />;

/** Who changed what of the team. */
export const TeamAudit = () => <AuditOf path="/audit" about="Every change of the team in the last ninety days" />;

function AuditOf({ path, personal, about }: { path: string; personal?: boolean; about: string }) {
  const { operation }: AuditSearch = useSearch({ strict: false });
  const navigate = useNavigate();
  const entries = useRead<AuditEntry[]>(path, { personal: personal ?? false, query: { operation, limit: 100 } });
  return (
    <Page title="Audit" about={`${about}, the newest hundred`}>
      <form
        className="row"
        onSubmit={event => {
          event.preventDefault();
          const operation = formText(event.currentTarget, 'operation');
          void navigate({ to: '.', search: operation === undefined ? {} : { operation } });
        }}
      >
        <input name="operation" aria-label="Operation" placeholder="Operation" defaultValue={operation} />
        <button className="button">Filter</button>
      </form>
      <Loaded of={entries}>
        {rows => (
          <Table
            label="Audit"
            rows={rows}
            keyOf={({ id }) => id}
            empty="Nothing was changed"
            columns={[
              { name: 'When', of: ({ timestamp }) => <Ago at={timestamp} /> },
              {
                name: 'Operation',
                of: ({ operation }) => (
                  <button
                    type="button"
                    className="linklike"
                    onClick={() => void navigate({ to: '.', search: { operation } })}
                  >
                    {operation}
                  </button>
                ),
              },
              { name: 'What', of: ({ target }) => <span className="mono">{target}</span> },
              {
                name: 'Who',
                of: ({ actor }) => (
                  <span title={actor.id ?? ''} style={{ whiteSpace: 'nowrap' }}>
                    {actor.kind} <span className="mono muted">{actor.id?.slice(0, 8)}</span>
                  </span>
                ),
              },
              { name: 'From', of: ({ address }) => <span className="mono muted">{address}</span> },
              { name: 'Answer', end: true, of: ({ status }) => status },
              {
                name: 'Change',
                of: ({ before, after }) => {
                  const text = [before, after].map(part => (part ? JSON.stringify(part) : '')).join(' → ');
                  return (
                    <span className="mono muted cut" style={{ display: 'block', maxWidth: 300 }} title={text}>
                      {before || after ? text : ''}
                    </span>
                  );
                },
              },
            ]}
          />
        )}
      </Loaded>
    </Page>
  );
}
