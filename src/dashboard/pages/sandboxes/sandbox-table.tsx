import { useNavigate, useSearch } from '@tanstack/react-router';
import { useCallback, useRef } from 'react';
import type { ListedSandbox } from '../../../protocol/api/sandbox.ts';
import { useHeldRows } from '../../parts/rows/held-rows.ts';
import { useRecycledKeys } from '../../parts/rows/recycled-keys.ts';
import { useRowWindow } from '../../parts/rows/row-window.ts';
import { useLatestMetrics } from './latest-metrics.ts';
import { SandboxRow } from './sandbox-row.tsx';
import type { SandboxesFilter } from './search.ts';

/** Height of a row, as `views.css` has it. */
const rowPx = 41;

const idOf = ({ sandboxID }: ListedSandbox) => sandboxID;

const columns = ['State', 'Sandbox', 'Template', 'Started', 'Time left', 'CPU', 'Memory', 'Disk', 'Node', 'Metadata'];

type SandboxTableProps = {
  rows: ListedSandbox[];
  /** The rows belong to the previous query, and are shown until the answer is there. */
  areLeaving: boolean;
  chosen: ReadonlySet<string>;
  onChoose: (change: (chosen: ReadonlySet<string>) => ReadonlySet<string>) => void;
  onFilter: (next: SandboxesFilter) => void;
};

/**
 * Sandboxes as rows with their latest numbers; rows can be selected. Only the rows in sight are drawn. Roles are set
 * explicitly, since the styles take the elements out of table layout, and browsers then drop their roles.
 */
export function SandboxTable({ rows: latest, areLeaving, chosen, onChoose, onFilter }: SandboxTableProps) {
  const { rows, waiting, hold } = useHeldRows(latest, idOf);
  const body = useRef<HTMLTableSectionElement>(null);
  const { first, end } = useRowWindow(body, rows.length, rowPx, areLeaving);
  const inSight = rows.slice(first, end);
  const keys = useRecycledKeys(inSight.map(({ row }) => row.sandboxID));
  const running = inSight.filter(({ row: { state } }) => state === 'running');
  const metrics = useLatestMetrics(running.map(({ row: { sandboxID } }) => sandboxID));
  // Stable functions: a row whose sandbox has not changed is not drawn again.
  const toggle = useCallback(
    (id: string, on: boolean) =>
      onChoose(before => new Set(on ? [...before, id] : [...before].filter(one => one !== id))),
    [onChoose],
  );
  const navigate = useNavigate();
  const open = useCallback(
    (sandboxId: string) => void navigate({ to: '/sandboxes/$sandboxId', params: { sandboxId } }),
    [navigate],
  );
  const team = useSearch({ strict: false, select: search => search.team });
  const ofTeam = team === undefined ? '' : `?team=${encodeURIComponent(team)}`;
  const all = latest.every(({ sandboxID }) => chosen.has(sandboxID));
  return (
    <div className="table-wrap sandboxes" tabIndex={0} role="region" aria-label="Sandboxes" {...hold}>
      {waiting > 0 && <div className="waiting">{waiting} new, shown when the pointer rests</div>}
      <table role="table" aria-rowcount={rows.length + 1}>
        <thead role="rowgroup">
          <tr role="row">
            <th role="columnheader" scope="col">
              <input
                type="checkbox"
                aria-label="Choose all"
                checked={all}
                onChange={event =>
                  onChoose(() => new Set(event.target.checked ? latest.map(({ sandboxID }) => sandboxID) : []))
                }
              />
            </th>
            {columns.map(name => (
              <th key={name} role="columnheader" scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody role="rowgroup" ref={body}>
          <Space rows={first} />
          {inSight.map((shown, index) => (
            <SandboxRow
              key={keys.get(shown.row.sandboxID)}
              row={shown.row}
              isGone={shown.isGone}
              place={first + index + 2}
              numbers={shown.row.state === 'running' ? metrics[shown.row.sandboxID] : undefined}
              isChosen={chosen.has(shown.row.sandboxID)}
              href={`/dashboard/sandboxes/${shown.row.sandboxID}${ofTeam}`}
              onOpen={open}
              onChoose={toggle}
              onFilter={onFilter}
            />
          ))}
          <Space rows={rows.length - end} />
        </tbody>
      </table>
    </div>
  );
}

/** The space of rows that are out of sight. */
function Space({ rows }: { rows: number }) {
  return rows <= 0 ? null : <tr aria-hidden style={{ height: rows * rowPx }} />;
}
