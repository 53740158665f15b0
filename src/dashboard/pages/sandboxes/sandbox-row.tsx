import { memo, useLayoutEffect, useRef } from 'react';
import type { ReactNode, RefObject } from 'react';
import type { SandboxMetric } from '../../../protocol/api/metrics.ts';
import type { ListedSandbox } from '../../../protocol/api/sandbox.ts';
import { formatBytes } from '../../format.ts';
import { Ago, Badge, CopyBeside } from '../../parts/bits.tsx';
import { follow } from '../../parts/rows/follow.ts';
import type { SandboxesFilter } from './search.ts';
import { StateBadge } from './state-badge.tsx';
import type { Shared } from './sparkline.tsx';
import { Sparkline, useRecent, useRests } from './sparkline.tsx';
import { TimeLeft } from './time-left.tsx';

type SandboxRowProps = {
  row: ListedSandbox;
  isGone: boolean;
  /** Its position among all rows, from 1, for screen readers. */
  place: number;
  numbers: SandboxMetric | undefined;
  isChosen: boolean;
  /** Address of its page. */
  href: string;
  onOpen: (id: string) => void;
  onChoose: (id: string, on: boolean) => void;
  onFilter: (next: SandboxesFilter) => void;
};

/** This many characters are enough to tell nodes apart. */
const nodeCharacters = 8;

/** A sandbox as a row. A row whose sandbox is gone stays until the rows may move. */
export const SandboxRow = memo(function SandboxRow(props: SandboxRowProps) {
  const { row, isGone, place, numbers, isChosen, href, onOpen, onChoose, onFilter } = props;
  const { sandboxID, state, templateID, alias, nodeID, startedAt, metadata = {} } = row;
  const element = useRef<HTMLTableRowElement>(null);
  useLeaveFocus(element, sandboxID);
  return (
    <tr ref={element} role="row" aria-selected={isChosen} aria-rowindex={place} className={isGone ? 'gone' : undefined}>
      <td role="cell">
        <input
          type="checkbox"
          aria-label={`Choose ${sandboxID}`}
          checked={isChosen}
          disabled={isGone}
          onChange={event => onChoose(sandboxID, event.target.checked)}
        />
      </td>
      <td role="cell">{isGone ? <Badge tone="idle">ended</Badge> : <StateBadge key={sandboxID} of={row} />}</td>
      <td role="cell">
        <span className="row copyable">
          {/* The router's own link looks at each change of the address, in every row. */}
          <a href={href} className="mono" onClick={event => follow(event, () => onOpen(sandboxID))}>
            {sandboxID}
          </a>
          <CopyBeside key={sandboxID} text={sandboxID} />
        </span>
      </td>
      <td role="cell">
        <button type="button" className="linklike cut" onClick={() => onFilter({ template: templateID })}>
          {alias ?? templateID}
        </button>
      </td>
      <td role="cell">
        <Ago at={startedAt} />
      </td>
      <td role="cell">{!isGone && <TimeLeft of={row} />}</td>
      <Use sandboxId={sandboxID} isRunning={state === 'running' && !isGone} numbers={numbers} />
      <td role="cell">
        <button
          type="button"
          className="linklike cut mono"
          title={`Those of ${nodeID} alone`}
          onClick={() => onFilter({ node: nodeID })}
        >
          {nodeID.slice(0, nodeCharacters)}
        </button>
      </td>
      <td role="cell">
        <Metadata of={metadata} onFilter={onFilter} />
      </td>
    </tr>
  );
});

/** Makes a row that now shows another sandbox lose the focus: the next key would be meant for the previous one. */
function useLeaveFocus(row: RefObject<HTMLElement | null>, sandboxId: string): void {
  const shown = useRef(sandboxId);
  useLayoutEffect(() => {
    if (shown.current === sandboxId) return;
    shown.current = sandboxId;
    const { activeElement } = document;
    if (activeElement instanceof HTMLElement && row.current?.contains(activeElement)) activeElement.blur();
  }, [row, sandboxId]);
}

type UseProps = { sandboxId: string; isRunning: boolean; numbers: SandboxMetric | undefined };

/** A sandbox's use of processor, memory and disk; in a row that stays, also lines of the last quarter of an hour. */
function Use({ sandboxId, isRunning, numbers }: UseProps) {
  const rests = useRests(sandboxId);
  if (isRunning && rests) return <UseWithLines sandboxId={sandboxId} numbers={numbers} />;
  return <Numbers of={numbers} isIndented={isRunning} line={() => null} />;
}

function UseWithLines({ sandboxId, numbers }: Omit<UseProps, 'isRunning'>) {
  const recent = useRecent(sandboxId);
  return <Numbers of={numbers} isIndented line={of => <Sparkline of={of} recent={recent} />} />;
}

type NumbersProps = {
  of: SandboxMetric | undefined;
  /** Each has a line before it, or will have one. */
  isIndented: boolean;
  line: (of: Shared) => ReactNode;
};

function Numbers({ of: numbers, isIndented, line }: NumbersProps) {
  const cell = (of: Shared, value: string | undefined, whole: string | undefined) => (
    <td role="cell" className={isIndented ? 'num with-line' : 'num'} title={whole}>
      {line(of)}
      {value ?? <Nothing />}
    </td>
  );
  const of = (used: number, total: number) => `${formatBytes(used)} of ${formatBytes(total)}`;
  return (
    <>
      {cell('cpu', numbers && `${numbers.cpuUsedPct.toFixed(0)} %`, numbers && `of ${numbers.cpuCount} CPU`)}
      {cell('memory', numbers && formatBytes(numbers.memUsed), numbers && of(numbers.memUsed, numbers.memTotal))}
      {cell('disk', numbers && formatBytes(numbers.diskUsed), numbers && of(numbers.diskUsed, numbers.diskTotal))}
    </>
  );
}

type MetadataProps = { of: Record<string, string>; onFilter: SandboxRowProps['onFilter'] };

/** A sandbox's metadata; a click filters by it. */
function Metadata({ of, onFilter }: MetadataProps) {
  return (
    <span className="row chips">
      {Object.entries(of).map(([key, value]) => (
        <button
          key={key}
          type="button"
          className="chip cut"
          title={`${key}=${value}`}
          onClick={() => onFilter({ metadata: `${encodeURIComponent(key)}=${encodeURIComponent(value)}` })}
        >
          {`${key}=${value}`}
        </button>
      ))}
    </span>
  );
}

const Nothing = () => <span className="muted">–</span>;
