/** The version of this Atoll, as package.json has it. */
export const platformVersion = '0.1.0';

/** The part of a release that decides who can work with it: `[major, minor]`; undefined for anything but a release. */
const numbersOf = (release: string): [number, number] | undefined => {
  const [, major, minor] = /^(\d{1,6})\.(\d{1,6})\.\d{1,6}/.exec(release) ?? [];
  return major === undefined || minor === undefined ? undefined : [Number(major), Number(minor)];
};

/** The rule of `worksWith`, in words for those whom it refuses. */
export const releaseRule = 'processes of a cluster work with their own minor release and the ones before and after it';

/** Whether processes of two releases can work with each other: a cluster is upgraded machine by machine. */
export function worksWith(release: string, own: string = platformVersion): boolean {
  const [one, other] = [numbersOf(release), numbersOf(own)];
  if (!one || !other) return release === own;
  return one[0] === other[0] && Math.abs(one[1] - other[1]) <= 1;
}
