/** Most shells of one window in one sandbox. */
export const shellsMax = 12;

/** The shells of a window by their numbers: the one shown, and perhaps another one beside it. */
export type Shells = { numbers: readonly number[]; shown: number; beside?: number | undefined };

/** What is shown of `numbers` when the page's address asks for this. */
export function shellsOf(numbers: readonly number[], asked: { shell?: number; beside?: number }): Shells {
  const shown = numbers.find(number => number === asked.shell) ?? numbers[0] ?? 1;
  return { numbers, shown, beside: numbers.find(number => number === asked.beside && number !== shown) };
}

/** The number of the next new shell. */
export const nextNumber = ({ numbers }: Shells): number => Math.max(...numbers) + 1;

/** Chooses a shell: it is shown, and if it was beside, the two change places. */
export function choose({ numbers, shown, beside }: Shells, number: number): Shells {
  return { numbers, shown: number, beside: number === beside ? shown : beside };
}

/** Shows a new shell in place of the current one. */
export function add(shells: Shells): Shells {
  const number = nextNumber(shells);
  return { ...shells, numbers: [...shells.numbers, number], shown: number };
}

/** Shows another shell beside: an existing one, or else a new one. */
export function split(shells: Shells): Shells {
  const { numbers, shown } = shells;
  const other = numbers.find(number => number !== shown);
  if (other !== undefined) return { numbers, shown, beside: other };
  const number = nextNumber(shells);
  return { numbers: [...numbers, number], shown, beside: number };
}

/** Ends a shell. If two are shown, the other one stays alone; after the last one, a new one starts. */
export function close({ numbers, shown, beside }: Shells, closed: number): Shells {
  const left = numbers.filter(number => number !== closed);
  const next = left.length > 0 ? left : [closed + 1];
  const stays = [shown, beside].find(number => number !== closed && number !== undefined);
  return { numbers: next, shown: stays ?? next.at(-1) ?? 1 };
}
