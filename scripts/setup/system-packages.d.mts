/** Packages that Atoll needs; those that set-up alone needs have `builds`. */
export const needed: readonly { name: string; why: string; builds?: boolean }[];
