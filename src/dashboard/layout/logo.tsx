/** A ring with a gap around what it keeps inside: an atoll. */
export function Logo({ size = 20 }: { size?: number }) {
  return (
    <svg width={size} height={size} viewBox="0 0 24 24" fill="none" aria-hidden>
      <path d="M15.5 3.2A9.5 9.5 0 1 0 21 9" stroke="currentColor" strokeWidth="3.4" strokeLinecap="round" />
      <circle cx="12" cy="12" r="3.2" fill="currentColor" />
    </svg>
  );
}
