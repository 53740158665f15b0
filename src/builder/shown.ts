/** Where a builder finds its job's directories: its root holds nothing else of the host. */
export const shownAs = { view: '/view', from: '/from', upper: '/upper', image: '/image' } as const;
