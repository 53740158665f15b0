import { Plus, X } from 'lucide-react';
import { useState } from 'react';
import type { Secret } from '../../../../protocol/api/secret.ts';
import { networkBounds } from '../../../../protocol/api/network.ts';
import { rowsOfPages, usePages, useReadOn } from '../../../api/pages.ts';
import type { HeaderRules } from './code.ts';

type Row = { id: number; host: string; header: string; value: string };

/** The placeholder for a secret in a header; the secret's value never comes here. */
const placeholderOf = (secret: string) => `\${e2b.secrets.${secret}}`;

const rowsOf = (rules: HeaderRules): Row[] =>
  Object.entries(rules)
    .flatMap(([host, headers]) => Object.entries(headers).map(([header, value]) => ({ host, header, value })))
    .map((row, id) => ({ ...row, id }));

/** The rules that the rows define; rows without a host or a header define nothing yet. */
function rulesOfRows(rows: readonly Omit<Row, 'id'>[]): HeaderRules {
  const rules: HeaderRules = {};
  for (const { host, header, value } of rows)
    if (host !== '' && header !== '') rules[host] = { ...rules[host], [header]: value };
  return rules;
}

type RuleRowsProps = { initial: HeaderRules; onChange: (rules: HeaderRules) => void };

/** Headers that requests to a host get on their way out, with secrets of the team in them. */
export function RuleRows({ initial, onChange }: RuleRowsProps) {
  const [rows, setRows] = useState(() => rowsOf(initial));
  const secrets = usePages<Secret>('/secrets');
  useReadOn(secrets, true);
  const set = (next: Row[]) => {
    setRows(next);
    onChange(rulesOfRows(next));
  };
  const edit = (id: number, part: Partial<Row>) => set(rows.map(row => (row.id === id ? { ...row, ...part } : row)));
  const field = (row: Row, name: 'host' | 'header' | 'value', label: string, placeholder: string) => (
    <input
      aria-label={label}
      placeholder={placeholder}
      value={row[name]}
      onChange={event => edit(row.id, { [name]: event.target.value })}
    />
  );
  const add = () =>
    set([...rows, { id: Math.max(0, ...rows.map(({ id }) => id + 1)), host: '', header: '', value: '' }]);
  return (
    <fieldset className="rules">
      <legend>Headers of requests to a host, by HTTP and HTTPS</legend>
      {rows.map(row => (
        <div key={row.id} className="rule">
          {field(row, 'host', 'Host', 'api.example.com')}
          {field(row, 'header', 'Header', 'Authorization')}
          {field(row, 'value', 'Value', 'Bearer …')}
          <select
            aria-label="Secret to put in"
            value=""
            onChange={event => edit(row.id, { value: `${row.value}${placeholderOf(event.target.value)}` })}
          >
            <option value="" disabled>
              Secret…
            </option>
            {rowsOfPages(secrets).map(({ name }) => (
              <option key={name}>{name}</option>
            ))}
          </select>
          <button
            type="button"
            className="button bare"
            aria-label="Remove this header"
            onClick={() => set(rows.filter(({ id }) => id !== row.id))}
          >
            <X size={14} />
          </button>
        </div>
      ))}
      <button
        type="button"
        className="button tiny"
        disabled={rows.length >= networkBounds.ruleDomainsMax * networkBounds.ruleHeadersMax}
        onClick={add}
      >
        <Plus size={13} /> Add a header
      </button>
    </fieldset>
  );
}
