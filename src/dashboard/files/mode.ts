/** Converts a mode as lists show it (`-rw-r--r--`) to the octal number that sets it (`644`); empty if it is none. */
export function octalMode(shown: string): string {
  const bits = shown.slice(-9);
  if (!/^[rwxsStT-]{9}$/.test(bits)) return '';
  const digits = [0, 3, 6].map(at => {
    const [read, write, run = ''] = bits.slice(at, at + 3);
    return (read === 'r' ? 4 : 0) + (write === 'w' ? 2 : 0) + ('xst'.includes(run) ? 1 : 0);
  });
  const special =
    (/s/i.test(bits[2] ?? '') ? 4 : 0) + (/s/i.test(bits[5] ?? '') ? 2 : 0) + (/t/i.test(bits[8] ?? '') ? 1 : 0);
  return `${special || ''}${digits.join('')}`;
}
