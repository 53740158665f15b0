/** Where a builder finds what it is shown: its root holds nothing else of the host. */
export const shownAs = { view: '/view', from: '/from', upper: '/upper', image: '/image' } as const;
