/** Niceness of the platform and what it starts (nice(2)): three times the weight of a process at 0. */
export const platformNiceness = -5;
