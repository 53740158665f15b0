/** Something that changes one step at a time. */
type Changing = { changing?: Promise<void> };

/** Carries out a change when those that were asked for before have ended, however they ended. */
export function inTurn<T>(subject: Changing, change: () => Promise<T>): Promise<T> {
  const before = subject.changing;
  const turn = (async () => {
    await before;
    return change();
  })();
  subject.changing = turn.then(
    () => {},
    () => {},
  );
  return turn;
}
