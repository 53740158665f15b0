import { parseLines, parsePairs } from './code.ts';

type CheckProps = { label: string; checked: boolean; onChange: (checked: boolean) => void };

/** Yes or no. */
export function Check({ label, checked, onChange }: CheckProps) {
  return (
    <label className="check">
      <input type="checkbox" checked={checked} onChange={event => onChange(event.target.checked)} />
      {label}
    </label>
  );
}

type LinesProps = { label: string; placeholder: string; initial: string[]; onChange: (lines: string[]) => void };

/** Several texts, one per line. */
export function Lines({ label, placeholder, initial, onChange }: LinesProps) {
  return (
    <label className="field">
      <span>{label}</span>
      <textarea
        rows={2}
        placeholder={placeholder}
        defaultValue={initial.join('\n')}
        onChange={event => onChange(parseLines(event.target.value))}
      />
    </label>
  );
}

type PairsProps = {
  label: string;
  placeholder: string;
  initial: Record<string, string>;
  onChange: (pairs: Record<string, string>) => void;
};

/** Names with values, one pair per line. */
export function Pairs({ label, placeholder, initial, onChange }: PairsProps) {
  return (
    <label className="field">
      <span>{label}</span>
      <textarea
        rows={2}
        placeholder={placeholder}
        defaultValue={Object.entries(initial)
          .map(([name, value]) => `${name}=${value}`)
          .join('\n')}
        onChange={event => {
          const pairs = parsePairs(event.target.value);
          event.target.setCustomValidity(pairs ? '' : 'One name=value on each line');
          if (pairs) onChange(pairs);
        }}
      />
    </label>
  );
}
