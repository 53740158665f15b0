/** Where a builder finds the directories of its job: its root holds nothing else of the host. */
export const shownAs = { view: '/view', from: '/from', upper: '/upper', image: '/image' } as const;
