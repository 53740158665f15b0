import { useNavigate, useSearch } from '@tanstack/react-router';
import { Columns2, Plus, Square, UserRound } from 'lucide-react';
import { useState } from 'react';
import type { Target } from '../../../api/agent.ts';
import { NeedsRunning } from '../needs-running.tsx';
import { useTarget } from '../target.ts';
import { keepFontPixels, keptFontPixels } from './font-size.ts';
import { NewShellDialog } from './new-shell.tsx';
import { keepShellNumbers, keepShellStart, shellNumbers, shellStart } from './shell-memory.ts';
import type { ShellStart } from './shell-memory.ts';
import { ShellView } from './shell-view.tsx';
import { add, choose, close, nextNumber, type Shells, shellsMax, shellsOf, split } from './shells.ts';
import type { TerminalSearch } from './terminal-search.ts';

/** Shells in the sandbox, one tab each. They go on when the user leaves, and are there again after a reload. */
export function Terminal() {
  const target = useTarget();
  const { watch, cols, rows }: TerminalSearch = useSearch({ strict: false });
  const [font, setFont] = useState(keptFontPixels);
  const onFont = (by: 1 | -1) => setFont(keepFontPixels(font + by));
  if (!target) return <NeedsRunning what="A terminal" />;
  if (watch === undefined) return <ShellTabs key={target.sandboxId} target={target} font={font} onFont={onFont} />;
  const size = cols !== undefined && rows !== undefined ? { cols, rows } : null;
  return (
    <div className="stack" style={{ gap: 10 }}>
      <p className="muted">
        You watch a process: its shell, or what it prints from now on. What you type does not go there.
      </p>
      <ShellView key={watch} target={target} watched={watch} size={size} isShown isFirst font={font} onFont={onFont} />
    </div>
  );
}

type ShellsProps = { target: Target; font: number; onFont: (by: 1 | -1) => void };

function ShellTabs({ target, font, onFont }: ShellsProps) {
  const search: TerminalSearch = useSearch({ strict: false });
  const navigate = useNavigate();
  const [numbers, setNumbers] = useState(() => shellNumbers(target.sandboxId));
  const shells = shellsOf(numbers, search);
  const { shown, beside } = shells;
  const change = (next: Shells) => {
    keepShellNumbers(target.sandboxId, [...next.numbers]);
    setNumbers([...next.numbers]);
    const places = { shell: next.shown, ...(next.beside !== undefined && { beside: next.beside }) };
    void navigate({ to: '.', search: places, replace: true });
  };
  const isFull = numbers.length >= shellsMax;
  const nameOf = (number: number) => {
    const { user } = shellStart({ sandboxId: target.sandboxId, number });
    return user === 'user' ? `Shell ${number}` : `Shell ${number}, ${user}`;
  };
  return (
    <div className="stack" style={{ gap: 10 }}>
      <div className="row">
        <div className="segments" role="group" aria-label="Shells">
          {numbers.map(number => (
            <button
              key={number}
              type="button"
              aria-pressed={number === shown || number === beside}
              onClick={() => change(choose(shells, number))}
            >
              {nameOf(number)}
            </button>
          ))}
        </div>
        <NewShells
          isFull={isFull}
          onNew={start => {
            if (start) keepShellStart({ sandboxId: target.sandboxId, number: nextNumber(shells) }, start);
            change(add(shells));
          }}
        />
        <SplitButton
          isSplit={beside !== undefined}
          onSplit={() => change(split(shells))}
          onJoin={() => change({ numbers, shown })}
        />
      </div>
      <div className={`shells ${beside === undefined ? '' : 'split'}`}>
        {numbers.map(number => (
          <ShellView
            key={number}
            target={target}
            number={number}
            isShown={number === shown || number === beside}
            isFirst={number === shown}
            font={font}
            onFont={onFont}
            onClose={() => change(close(shells, number))}
          />
        ))}
      </div>
    </div>
  );
}

type NewShellsProps = {
  isFull: boolean;
  /** `start`: the user and directory, if not the usual ones. */
  onNew: (start?: ShellStart) => void;
};

function NewShells({ isFull, onNew }: NewShellsProps) {
  const [asking, setAsking] = useState(false);
  return (
    <>
      <button type="button" className="button" disabled={isFull} onClick={() => onNew()}>
        <Plus size={14} /> New shell
      </button>
      <button type="button" className="button" disabled={isFull} onClick={() => setAsking(true)}>
        <UserRound size={14} /> Shell as …
      </button>
      {asking && <NewShellDialog onClose={() => setAsking(false)} onDone={onNew} />}
    </>
  );
}

type SplitButtonProps = { isSplit: boolean; onSplit: () => void; onJoin: () => void };

function SplitButton({ isSplit, onSplit, onJoin }: SplitButtonProps) {
  return isSplit ? (
    <button type="button" className="button" onClick={onJoin}>
      <Square size={14} /> One alone
    </button>
  ) : (
    <button type="button" className="button" onClick={onSplit}>
      <Columns2 size={14} /> Split
    </button>
  );
}
